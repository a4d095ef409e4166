"""Every file of a run, damaged in every way, then resumed, reported and loaded: right, or refused by one sentence."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import DAMAGES, deleted, flipped
from small import forget_checksums, same_runs

import fedkin as fk
from fedkin.runs import manifest

ASKED: dict[str, Any] = {"rounds": 4, "evaluate_every": 1}
METHOD = "fedmcsa"  # which has files of all kinds


class Stops(fk.Callback):
    """Stops the method after three rounds."""

    def recorded(self, record: fk.Record) -> bool:
        return record.method != METHOD or record.round < 3


Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, and beside it that of the same run, stopped after three rounds."""
    place = tmp_path_factory.mktemp("runs")
    fk.compare([METHOD], fk.Data("digits", clients=4), folder=place / "whole", **ASKED)
    with pytest.raises(fk.BadInput, match="stopped"):
        fk.compare([METHOD], fk.Data("digits", clients=4), callbacks=[Stops()], folder=place / "half", **ASKED)
    return place / "whole"


def copied(whole: Path, name: str) -> Path:
    shutil.rmtree("here", ignore_errors=True)
    shutil.copytree(whole.with_name(name), "here")
    return Path("here")


def every_file(folder: Path) -> list[str]:
    loose = (".lock", "report.html")
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.name not in loose)


def sentence(outcome: Any) -> bool:
    """Whether a command ended with one sentence that says what is damaged."""
    assert "should not" not in outcome.err, outcome.err
    assert "Traceback" not in outcome.err, outcome.err
    return outcome.code == 2 and outcome.err.strip().splitlines()[-1].startswith("fedkin: ")


@pytest.mark.parametrize("name", ["whole", "half"])
def test_a_damaged_run_goes_on_right_or_not_at_all(fedkin: Any, whole: Path, name: str) -> None:
    """Every file is damaged in one way, one after another in all of them; `make soak` tries all ways on each file."""
    right = 0
    files = every_file(whole.with_name(name))
    for file, damage in zip(files, cycle(DAMAGES.values()), strict=False):
        folder = copied(whole, name)
        damage(folder / file)
        outcome = fedkin("compare", "--resume", "here")
        if outcome.code == 0:
            same_runs(whole / METHOD / "seed-0", folder / METHOD / "seed-0")
            assert not manifest.damaged(folder / METHOD / "seed-0"), file
            right += 1
        else:
            assert sentence(outcome), (file, outcome)
    assert right > (len(files) / 3 if name == "whole" else 5), "most that is done can be made again"


def reported(fedkin: Any, whole: Path, name: str, damage: Damage) -> Iterator[tuple[str, Path, bool]]:
    """Damage one file after another; yields it, the folder, and whether there is a page, which is the right one."""
    copied(whole, name)
    assert fedkin("report", "here").code == 0
    page = Path("here/report.html").read_text()
    for file in every_file(whole.with_name(name)):
        if damage is deleted and file.endswith("seed-0/summary.json"):
            continue  # without it a run is one that is not finished, and the page says so
        folder = copied(whole, name)
        damage(folder / file)
        outcome = fedkin("report", "here")
        if outcome.code == 0:
            assert Path("here/report.html").read_text() == page, file
        else:
            assert sentence(outcome), (file, outcome)
        yield file, folder, outcome.code == 0


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_no_number_of_a_damaged_file_of_a_stopped_run_is_shown(fedkin: Any, whole: Path, damage: Damage) -> None:
    refused = {Path(file).name for file, _, shown in reported(fedkin, whole, "half", damage) if not shown}
    assert {"rounds.jsonl", "selected.bin", "kept.bin"} <= refused


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_no_number_of_a_damaged_file_is_shown(fedkin: Any, whole: Path, damage: Damage) -> None:
    models = fk.load_comparison(whole).runs[METHOD]
    right = {name: value.numpy() for name, value in next(iter(models.values())).models["personal"].items()}
    for file, folder, _ in reported(fedkin, whole, "whole", damage):
        try:
            found = next(iter(fk.load_comparison(folder).runs[METHOD].values())).models["personal"]
        except (fk.BadInput, manifest.Damaged):
            continue
        assert all(np.array_equal(value.numpy(), right[name]) for name, value in found.items()), file


def test_what_is_damaged_is_said(fedkin: Any, whole: Path) -> None:
    folder = copied(whole, "whole")
    assert fedkin("check", "here").code == 0
    flipped(folder / METHOD / "seed-0" / "models.safetensors")
    outcome = fedkin("check", "here")
    assert outcome.code == 1
    assert f"here/{METHOD}/seed-0/models.safetensors: damaged or missing" in outcome.out
    assert "not finished" in fedkin("check", str(whole.with_name("half"))).out


@pytest.mark.parametrize("name", ["whole", "half"])
def test_every_changed_file_is_said(fedkin: Any, whole: Path, name: str) -> None:
    folder = copied(whole, name)
    found = fedkin("check", "here")
    assert found.code == 0, found.out
    for file in every_file(whole.with_name(name)):
        folder = copied(whole, name)
        flipped(folder / file)
        found = fedkin("check", "here")
        assert found.code in (1, 2), (file, found.out)
        place = Path(file).with_suffix(".json") if "checkpoints" in file else Path(file)
        assert found.code == 2 or f"here/{place}: damaged or missing" in found.out, (file, found.out)


def test_nobody_has_to_check(fedkin: Any, whole: Path) -> None:
    folder = copied(whole, "whole")
    path = folder / METHOD / "seed-0" / "rounds.jsonl"
    path.write_text(path.read_text().replace('"selected": 4', '"selected": 3', 1))
    assert fedkin("report", "here").code == 2
    assert fedkin("report", "here", "--no-verify").code in (0, 2)
    assert not manifest.state["verify"]
    fedkin("report", "here")
    assert manifest.state["verify"], "the next command checks again"


def test_folders_without_checksums_are_read(fedkin: Any, whole: Path) -> None:
    folder = copied(whole, "whole")
    forget_checksums(folder)
    assert fedkin("report", "here").code == 0
    assert fedkin("compare", "--resume", "here").code == 0
