"""Odd words on the command line, odd files and odd modules: each ends with one sentence, and leaves no folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fedkin.command import cli

DATA = ("--data", "digits", "--clients", "4", "--rounds", "2")
MODULE = """
from torch import nn

class Lazy(nn.Sequential):
    def __init__(self, shape, classes):
        super().__init__(nn.Flatten(), nn.LazyLinear(classes))

class Raises(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.layer = nn.Linear(64, classes)

    def forward(self, x):
        raise KeyError("mine")

class Exits(nn.Module):
    def __init__(self, shape, classes):
        raise SystemExit(4)
"""
FILES = {
    "raises.py": "raise ValueError('no')\n",
    "exits.py": "import sys; sys.exit(3)\n",
    "syntax.py": "def f(:\n",
    "odd_nets.py": MODULE,
    "null.json": '{"method": "fedavg", "data": null}',
    "list.json": '{"method": "fedavg", "data": [1]}',
    "five.json": '{"method": "fedavg", "data": 5}',
    "deep.json": '{"method":' + "[" * 100_000 + "]" * 100_000 + "}",
    "deep.toml": "a=" + "[" * 100_000 + "]" * 100_000,
    "number.json": '{"method": {"is": "Method", "name": 5}}',
    "names.json": '{"method": ["fedavg", 5]}',
    "types.json": '{"method": "fedavg", "device": 5, "score": [["x"]], "metric": [5]}',
}
MODELS = ("raises:A", "exits:A", "syntax:A", ":Class", ".m:Good", "builtins:dict", "os:abort", "odd_nets:Lazy")
MODELS += ("odd_nets:Raises", "odd_nets:Exits", "odd_nets:", "odd_nets:Nope", "dnn:99999999999999", "dnn:0", "lstm", "")
METHODS = (
    ":f",
    "raises:f",
    "exits:f",
    "syntax:f",
    "builtins:dict",
    "os:abort",
    "..",
    "",
    "fedavg@",
    "x.json",
    "x" * 300,
)
METHODS += ("\ud800", "fedavg\0", *(name for name in FILES if name.endswith(("json", "toml"))))
SETTINGS = ("batch=1e30", f"batch={10**20}", f"steps={10**20}", "eta=1e308", "eta=nan", f"eta={10**400}", "epochs=1e11")
SETTINGS += ("eta=[1]", 'eta={"a":1}', "eta=" + "[" * 5000, "=1", "")
OPTIONS = (("--threads", "100000"), ("--chunk", str(10**20)), ("--memory", "1e400"), ("--seeds", str(10**20)))
OPTIONS += (("--seeds", f"0,{10**25}"), ("--rounds", str(10**20)), ("--jobs", str(10**20)), ("--splits", str(10**11)))
OPTIONS += (("--data-seeds", str(10**11)), ("--data-seed", str(10**25)), ("--test", "nan"), ("--device", "cuda:999999"))
OPTIONS += (("--evaluate-every", str(10**20)), ("--partition", "dirichlet:nan"), ("--export", "x.pdf"))
PLACES = (
    "x" * 300,
    "./" + "x" * 300 + ".csv",
    "/dev/zero",
    "/dev/null",
    "~nouser/x.csv",
    "./\udcff.csv",
    "a\0b",
    "[/x]",
)
FOLDERS = ("/proc/x", "x" * 300, "a\0b", "\ud800", "/dev/null", "syntax.py/x")
CASES = [
    *(("run", "fedavg", *DATA, "--model", model) for model in MODELS),
    *(("run", method, *DATA) for method in METHODS),
    *(("run", "fedavg", *DATA, "--set", f"train.{setting}") for setting in SETTINGS),
    *(("run", "fedavg", *DATA, *words) for words in OPTIONS),
    *(("run", "fedavg", "--data", data, "--rounds", "2") for data in PLACES),
    *(("run", "fedavg", *DATA, "--out", out) for out in FOLDERS),
    *(("report", folder) for folder in (*FOLDERS, ".", "[/x]")),
    *(("run", "--resume", folder) for folder in (*FOLDERS, ".", "[/x]")),
    *(("data", "show", "synthetic", "--clients", many) for many in ("100000000", str(10**20))),
    *(("methods", "[/x]"), ("data", "show", "[/x]"), ("[/x]",), ("preset", "[/x]"), ("export", "here", "-o", "[/x]")),
]


@pytest.mark.parametrize("words", CASES, ids=lambda words: ascii(" ".join(words))[1:60])
def test_an_odd_invocation_is_one_sentence(
    fedkin: Any, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in FILES.items():
        Path(name).write_text(text)
    monkeypatch.setattr(sys, "path", [str(Path.cwd()), *sys.path])
    before = set(Path().iterdir())
    outcome = fedkin(*words)
    for name in FILES:
        sys.modules.pop(Path(name).stem, None)
    assert outcome.code == 2, outcome
    assert outcome.err.startswith("fedkin: "), outcome.err
    assert outcome.err.count("\n") == 1, outcome.err
    assert len(outcome.err) < 1200
    assert outcome.err.rstrip("\n").isprintable()
    assert "should not" not in outcome.err
    assert {path for path in Path().iterdir() if path.name != "__pycache__"} == before


@pytest.mark.parametrize("command", [("federation", "serve"), ("report",), ("run", "fedavg", "--data"), ("check",)])
def test_a_link_to_itself_is_one_sentence(fedkin: Any, command: tuple[str, ...]) -> None:
    Path("loop.csv").symlink_to("loop.csv")
    outcome = fedkin(*command, "./loop.csv")
    assert outcome.code == 2
    assert outcome.err.startswith("fedkin: ")
    assert outcome.err.count("\n") == 1


def test_a_folder_whose_name_looks_like_markup_is_a_folder(fedkin: Any) -> None:
    outcome = fedkin("run", "fedavg", *DATA, "--out", "[/x]")
    assert outcome.code == 0
    assert "The run is in [/x]" in outcome.err
    assert Path("[/x]/summary.json").exists()


def test_code_of_the_user_is_named_with_its_line(fedkin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("odd_nets.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [str(Path.cwd()), *sys.path])
    outcome = fedkin("run", "fedavg", *DATA, "--model", "odd_nets:Raises")
    sys.modules.pop("odd_nets", None)
    line = MODULE.splitlines().index('        raise KeyError("mine")') + 1
    assert f"{Path('odd_nets.py').resolve()}, line {line}: KeyError: 'mine'" in outcome.err


def test_what_nobody_thought_of_is_a_sentence_and_a_traceback_if_asked(fedkin: Any, monkeypatch: Any) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise AssertionError("a mistake\nof ours")

    monkeypatch.setattr("fedkin.command.play.read_experiments", broken)
    monkeypatch.setattr("fedkin.imports.place_of", lambda error: "")
    outcome = fedkin("run", "fedavg")
    assert outcome.code == 1
    assert outcome.err.startswith("fedkin: Something failed that should not: AssertionError: a mistake of ours (")
    assert "Traceback" not in outcome.err
    assert "Traceback" in fedkin("run", "fedavg", cli.DEBUG).err


def test_a_terminal_without_other_letters_gets_their_numbers(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fedkin.command.cli", "compare", "fedavg", *DATA, "--out", "ä"]
    env = {"PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env, timeout=200)
    assert found.returncode == 0, found.stderr
    assert "Traceback" not in found.stderr
