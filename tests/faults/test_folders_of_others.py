"""A folder of somebody else runs no code: neither modules that it names, nor scripts in the page that is made of it."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from small import forget_checksums

import fedkin as fk
from fedkin import imports
from fedkin.report.page import page
from fedkin.report.study import studied
from fedkin.runs.files import Damaged
from fedkin.runs.run import Run

SCRIPT = "0<img src=x onerror=alert(1)>"
QUICK = ("--data", "synthetic", "--clients", "3", "--rounds", "2")
MODULE = """
from pathlib import Path
Path("it-ran").touch()
def network(shape, classes):
    raise ValueError("and was called")
"""


@pytest.fixture
def theirs(fedkin: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a finished run, as another process sees it; whoever changes it leaves out its check sums."""
    assert fedkin("run", "fedavg", *QUICK, "--out", "here").code == 0
    forget_checksums(Path("here"))
    monkeypatch.setattr(imports, "TRUSTED", set())
    monkeypatch.setattr(sys, "path", [str(Path.cwd()), *sys.path])
    Path("their_module.py").write_text(MODULE)
    yield Path("here")
    sys.modules.pop("their_module", None)


def change(path: Path, *keys: Any, value: Any) -> None:
    """Set what a JSON file says at these keys."""
    found = stored = json.loads(path.read_text())
    for key in keys[:-1]:
        found = found[key]
    found[keys[-1]] = value
    path.write_text(json.dumps(stored))


MODEL, PART = ("model",), ("method", "train", "is")


@pytest.mark.parametrize(("keys", "name"), [(MODEL, "their_module:network"), (PART, "their_module:Part")])
@pytest.mark.parametrize("command", [("run", "--resume", "here", "--rounds", "3"), ("export", "here", "-o", "model")])
def test_modules_of_a_folder_are_not_imported(fedkin: Any, theirs: Path, command: Any, keys: Any, name: str) -> None:
    change(theirs / "plan.json", "arms", 0, *keys, value=name)
    change(theirs / "fedavg/seed-0/experiment.json", *keys, value=name)
    outcome = fedkin(*command)
    assert outcome.code == 2
    assert "add --trust" in outcome.err
    assert not Path("it-ran").exists()
    assert fedkin(*command, "--trust").code == 2, "it has no such network and no such part"
    assert Path("it-ran").exists()
    assert imports.EVERYTHING in imports.TRUSTED
    fedkin(*command)
    assert imports.EVERYTHING not in imports.TRUSTED, "the next command is asked anew"


def test_a_loaded_run_imports_nothing(theirs: Path) -> None:
    change(theirs / "fedavg/seed-0/experiment.json", "model", value="their_module:network")
    run = fk.load_run(theirs)
    with pytest.raises(fk.BadInput, match="trust=True"):
        run.model()
    assert not Path("it-ran").exists()
    with pytest.raises(fk.BadInput, match="and was called"):
        fk.load(theirs, trust=True).model()  # type: ignore[union-attr]


def test_what_was_played_here_is_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(imports, "TRUSTED", set())
    fk.run(fk.Experiment(fk.methods.fedavg(), fk.Data("synthetic", clients=3), rounds=1), tmp_path / "run")
    with imports.named_in(tmp_path / "run"):
        imports.user_module("json", "A module")
    with imports.named_in(tmp_path), pytest.raises(fk.BadInput, match="--trust"):
        imports.user_module("json", "A module")


@pytest.mark.parametrize(
    ("file", "keys"),
    [
        ("plan.json", ("arms", 0, "seed")),
        ("plan.json", ("arms", 0, "rounds")),
        ("plan.json", ("arms", 0, "data")),
        ("plan.json", ("arms", 0)),
        ("plan.json", ("arms",)),
        ("plan.json", ("jobs",)),
    ],
)
@pytest.mark.parametrize("value", ["../../there", SCRIPT, None, [], -1])
def test_a_plan_of_another_shape_is_one_sentence(fedkin: Any, theirs: Path, file: str, keys: Any, value: Any) -> None:
    change(theirs / file, *keys, value=value)
    for command in (("report", "here"), ("run", "--resume", "here", "--rounds", "3")):
        outcome = fedkin(*command)
        assert outcome.code == 2, outcome
        assert "plan.json is damaged" in outcome.err
        assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    "keys", [("seed",), ("method",), ("resolved",), ("resolved", "clients"), ("resolved", "fingerprint"), ("rounds",)]
)
@pytest.mark.parametrize("value", [SCRIPT, None, 1.5])
def test_an_experiment_of_another_shape_is_refused(theirs: Path, keys: Any, value: Any) -> None:
    folder = theirs / "fedavg/seed-0"
    change(folder / "experiment.json", *keys, value=value)
    if isinstance(value, str) and keys[-1] == "fingerprint":
        return
    with pytest.raises(Damaged, match=r"experiment\.json is damaged"):
        Run(folder).n  # noqa: B018


def test_no_text_of_a_run_is_a_script_on_its_page(theirs: Path) -> None:
    """Even if the seed were a text, it would be shown as a text."""
    study = studied(theirs)
    for run in study.runs:
        run.__dict__["seed"] = SCRIPT
    made = page(study)
    assert "<img" not in made.partition("<script")[0]


def test_the_page_runs_no_script_but_its_own(theirs: Path) -> None:
    made = page(studied(theirs))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', made)
    assert policy is not None
    allowed = re.search(r"script-src ([^;]*);", policy[1])
    assert allowed is not None
    own = re.findall(r"<script>(.*?)</script>", made, re.DOTALL)
    assert allowed[1].split() == [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in own]


@pytest.mark.parametrize("command", [("report", "here"), ("run", "--resume", "here", "--rounds", "3")])
def test_a_failure_is_put_down_to_a_run_only_if_no_check_sums_vouch_for_it(
    fedkin: Any, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("macro")

    assert fedkin("run", "fedavg", *QUICK, "--out", "here").code == 0
    monkeypatch.setattr("fedkin.command.page.write_report", broken)
    monkeypatch.setattr("fedkin.command.play.resume_folder", broken)
    monkeypatch.setattr("fedkin.imports.place_of", lambda error: "")
    outcome = fedkin(*command)
    assert outcome.code == 1, "a mistake of ours"
    assert "Something failed that should not" in outcome.err
    forget_checksums(Path("here"))
    outcome = fedkin(*command)
    assert outcome.code == 2
    assert "here/fedavg/seed-0' is not as fedkin writes a run" in outcome.err
    assert "KeyError: 'macro'" in outcome.err
