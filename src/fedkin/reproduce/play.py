"""Plays the runs of presets and writes what they came to."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from fedkin.comparison.jobs import play_side_by_side
from fedkin.comparison.plan import Loaded, Planned
from fedkin.comparison.sequence import Watching, mend, nobody
from fedkin.presets.preset import Preset
from fedkin.reproduce.outcome import Outcome, completed, outcome
from fedkin.reproduce.store import Store, planned
from fedkin.reproduce.tables import FILES
from fedkin.runs import files
from fedkin.runs.command_folder import CommandFolder


def runs_of(presets: Sequence[Preset], store: Store, only: Sequence[str] = ()) -> list[Planned]:
    """Every run of these presets, each once."""
    found = {str(one.folder.path): one for preset in presets for one in planned(preset, store, only)}
    return list(found.values())


def play(
    runs: list[Planned],
    store: Store,
    jobs: int = 1,
    watching: Watching = nobody,
    warn: Callable[[str], None] = print,
    stopping: Callable[[], bool] = lambda: False,
    cluster: str | None = None,
) -> bool:
    """Play every run that is not done; returns False if some were stopped on the way. What is done is kept.

    With `cluster`, the address of a Ray cluster, they are played there.
    """
    files.make_folder(store.path)
    with files.locked(store.path):
        mend(runs, warn)
        options = {"resume": True, "watching": watching, "warn": warn, "stopping": stopping, "cluster": cluster}
        return play_side_by_side(runs, jobs, Loaded(), **options)  # type: ignore[arg-type]


def commands(preset: Preset, cells: list[Outcome], rounds: int | None = None) -> str:
    """The command that gives the runs that are there: several, if some columns were run with fewer repetitions."""
    whole = f"fedkin preset {preset.name} --scale {preset.scale}" + ("" if rounds is None else f" --rounds {rounds}")
    runs = {column: max(len(c["values"]) for c in cells if c["column"] == column) for column in preset.columns}
    usual = {column: max(map(preset.repetitions, preset.of(column))) for column in preset.columns}
    if runs == usual:
        return whole
    several: dict[str, list[str]] = {}
    for column, number in runs.items():
        if number:
            fewer = "" if number == usual[column] else f" --seeds {number}"
            several.setdefault(fewer, []).append(column)
    return "; ".join(
        whole + "".join(f" --only '{column}'" for column in columns if len(columns) < len(runs)) + fewer
        for fewer, columns in several.items()
    )


def concluded(
    preset: Preset, store: Store, rounds: int | None = None, before: Outcome | None = None
) -> tuple[Outcome, Path]:
    """Read what the finished runs of a preset say, and write result.json, tables and, with plotly, a page.

    `before` is an earlier result of the preset, whose numbers fill what is not in this store. Returns what the runs
    say, and the folder.
    """
    found = outcome(preset, store)
    found = found if before is None else completed(found, before, preset, store)
    found = {"preset": preset.name, "command": commands(preset, found["cells"], rounds)} | found
    folder = store.result(preset)
    files.make_folder(folder)
    write_json(folder / "result.json", found)
    for name, text in FILES.items():
        files.write(folder / name, text(found).encode())
    if find_spec("plotly") is not None:
        from fedkin.reproduce.page import page

        CommandFolder(folder).write_page(page(found))
    return found, folder


def write_json(path: Path, found: Outcome) -> None:
    """Write an outcome as JSON that people can read: a cell, a claim or a curve a line."""
    lists = ("cells", "claims", "curves")
    head = {name: value for name, value in found.items() if name not in lists}
    parts = [f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in head.items()]
    for name in lists:
        lines = ",\n  ".join(json.dumps(one, allow_nan=False, ensure_ascii=False) for one in found[name])
        parts.append(f"{json.dumps(name)}: [\n  {lines}\n ]" if lines else f"{json.dumps(name)}: []")
    files.write(path, ("{\n " + ",\n ".join(parts) + "\n}\n").encode())
