"""The house is as ARCHITECTURE.md draws it: who imports whom, how long files are, what authors of parts can import."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import fedkin as fk
from fedkin import round as rounds

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "fedkin"
FILES = sorted(SOURCE.rglob("*.py"))


def storeys() -> list[set[str]]:
    """The rooms of each storey of the picture in ARCHITECTURE.md, the lowest first."""
    drawn = re.search(r"```house\n(.*?)```", (ROOT / "ARCHITECTURE.md").read_text(), re.DOTALL)
    assert drawn is not None
    rows = [line.partition("  ")[0] for line in drawn.group(1).splitlines() if line.strip()]
    return [set(row.replace(",", " ").split()) for row in reversed(rows)]


def room(module: str) -> str:
    """The part of the house that a module belongs to: 'fedkin.runs.folder' -> 'runs'."""
    return module.split(".")[1] if "." in module else "fedkin"


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path) for path in FILES}


def imported(path: Path, late: bool) -> set[str]:
    """The modules of fedkin that a file imports; with `late` also those that its functions import."""
    tree = ast.parse(path.read_text())
    nodes = list(ast.walk(tree)) if late else tree.body
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in inner}
    return {name for name in found if name.split(".")[0] == "fedkin"}


def test_every_room_stands_once_in_the_picture() -> None:
    drawn = [name for storey in storeys() for name in storey]
    there = {room(name_of(path)) for path in FILES} - {"fedkin"}
    assert sorted(drawn) == sorted(there)


def test_rooms_import_only_what_is_below_them() -> None:
    height = {name: i for i, storey in enumerate(storeys()) for name in storey}
    wrong = []
    for path in FILES:
        here = room(name_of(path))
        for module in imported(path, late=True) if here != "fedkin" else ():
            there = room(module)
            if there != here and height[there] >= height[here]:
                wrong.append(f"{name_of(path)} imports {module}, which is not below it")
    assert not wrong, "\n".join(wrong)


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {name_of(path): imported(path, late=False) & MODULES for path in FILES}
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " -> ".join([*way[way.index(module) :], module])
        if module not in done:
            for other in graph[module] - {module}:
                visit(other, (*way, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_files_are_short() -> None:
    scripts = [*SOURCE.rglob("*.js"), *SOURCE.rglob("*.css")]
    every = [*FILES, *scripts, *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in every}
    assert not {name: length for name, length in lengths.items() if length > 300}


def test_a_round_fits_on_a_screen() -> None:
    assert len(inspect.getsource(rounds.play).splitlines()) <= 45


def test_a_round_of_fedavg_takes_five_files() -> None:
    """From `round.play` to the arithmetic: the file of the round, and one for each of the four parts."""
    method = fk.methods.fedavg()
    parts = (method.select, method.train, method.keep, method.collaborate)
    files = {inspect.getfile(type(part)) for part in parts} | {inspect.getfile(rounds.play)}
    assert len(files) == 5
    assert all(len(Path(file).read_text().splitlines()) < 130 for file in files)


def test_what_is_exported_is_there() -> None:
    for name in fk.__all__:
        assert hasattr(fk, name), name
    assert {"Model", "Message", "Slot", "Objective", "tree", "Task", "Sent", "Reply", "Work"} <= set(fk.__all__)


def test_the_names_of_before_say_their_new_name() -> None:
    with pytest.warns(DeprecationWarning, match="Run"):
        assert fk.Result is fk.Run
    with pytest.raises(AttributeError, match="nothing"):
        _ = fk.nothing
