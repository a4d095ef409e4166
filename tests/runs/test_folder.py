"""The layout of a run's folder: one owner, a version, and folders of before."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from small import Until, forget_checksums

import fedkin as fk

SOURCE = Path(__file__).resolve().parents[2] / "src" / "fedkin"


def experiment(rounds: int = 2) -> fk.Experiment:
    return fk.Experiment(fk.methods.fedmcsa(count=3), fk.Data("digits", clients=5), rounds=rounds, evaluate_every=1)


def test_only_one_module_knows_the_names_of_files() -> None:
    """Sentences may name a file; only `folder`, `command_folder` and `format` in runs/ open one by its name."""
    names = r"(experiment|clients|summary|plan|format)\.json|rounds\.jsonl|seed-|models\.safetensors|report\.html|\.bin"
    for path in SOURCE.rglob("*.py"):
        opened = re.findall(rf'[/(] ?f?"[\w.{{}}-]*(?:{names})"', path.read_text())
        owner = path.name in ("folder.py", "command_folder.py", "format.py")
        assert not opened or owner, f"{path}: {opened}"


def test_folders_without_a_version_are_read_and_resumed(tmp_path: Path) -> None:
    """Folders of before have no format.json; all else in them is the same."""
    fk.run(experiment(), tmp_path / "old")
    forget_checksums(tmp_path / "old")
    (tmp_path / "old" / "format.json").unlink()
    assert fk.load_run(tmp_path / "old").reached == 2
    resumed = fk.run(experiment(3), tmp_path / "old", resume=True)
    whole = fk.run(experiment(3))
    for name, value in whole.models["personal"].items():
        assert torch.equal(value, resumed.models["personal"][name])
    assert json.loads((tmp_path / "old" / "format.json").read_text()) == {"format": 1}


@pytest.mark.parametrize(
    ("text", "match"),
    [('{"format": 3}', "newer fedkin"), ("{}", "damaged"), ('{"format": "x"}', "damaged"), ("{", "damaged")],
)
def test_a_version_that_is_not_known_is_refused(tmp_path: Path, text: str, match: str) -> None:
    fk.run(experiment(), tmp_path / "run")
    (tmp_path / "run" / "format.json").write_text(text)
    with pytest.raises(fk.BadInput, match=match):
        fk.load_run(tmp_path / "run")
    with pytest.raises(fk.BadInput, match=match):
        _ = fk.Run(tmp_path / "run").lines
    with pytest.raises(fk.BadInput, match=match):
        fk.run(experiment(3), tmp_path / "run", resume=True)


def test_a_run_from_memory_says_what_its_folder_says(tmp_path: Path) -> None:
    made = fk.run(experiment(3), tmp_path / "run")
    read = fk.load_run(tmp_path / "run")
    assert read.summary == made.summary
    assert read.lines == made.lines
    assert read.experiment == made.experiment
    assert read.finished
    assert made.finished
    assert read.clients().equals(made.clients())
    assert read.name == made.name == "fedmcsa seed 0"
    for name, value in made.models["personal"].items():
        assert torch.equal(value, read.models["personal"][name])
    x = torch.randn(2, 64)
    assert torch.equal(made.model(1)(x), read.model("1")(x))


def test_what_was_not_kept_is_said() -> None:
    with pytest.raises(fk.BadInput, match="without a folder"):
        fk.run(experiment()).kin()


def test_an_extended_run_that_was_stopped_is_not_finished(tmp_path: Path) -> None:
    fk.run(experiment(2), tmp_path / "run")
    fk.run(experiment(5), tmp_path / "run", resume=True, callbacks=[Until(3)])
    with pytest.raises(fk.BadInput, match="not finished"):
        fk.load_run(tmp_path / "run")
    run = fk.Run(tmp_path / "run")
    assert not run.finished
    assert run.reached == 3
