"""Nothing is written outside the folder of a run, whatever its method is called and whatever links lie in it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fedkin as fk
from fedkin.runs import files
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.folder import RunFolder

QUICK = ("--data", "synthetic", "--clients", "3", "--rounds", "2")
WRITTEN = "mine, and nobody else's"
NAMES = ("..", ".", "", ".hidden", "a/b", "../b", "a\\b", "a\nb", "a\0b", "\u202eb", "\ud800", "x" * 10_000)


@pytest.mark.parametrize("name", NAMES)
def test_a_method_is_not_called_what_leads_elsewhere(name: str) -> None:
    with pytest.raises(fk.BadInput, match="name of its folder") as refusal:
        replace(fk.methods.fedavg(), name=name)
    assert len(str(refusal.value)) < 500
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("name", ["summary.json", "plan.json", "what-if", "Report.html"])
def test_a_method_does_not_take_the_place_of_a_file(name: str) -> None:
    with pytest.raises(fk.BadInput, match="cannot be the folder of a method"):
        CommandFolder(Path("here")).run(name, 0)


def test_a_name_of_two_dots_overwrites_nothing(fedkin: Any) -> None:
    Path("p").mkdir()
    Path("p/summary.json").write_text(WRITTEN)
    outcome = fedkin("run", "fedavg", *QUICK, "--set", "name=..", "--out", "p/inner")
    assert outcome.code == 2
    assert Path("p/summary.json").read_text() == WRITTEN
    assert os.listdir("p") == ["summary.json"]


@pytest.fixture
def finished(fedkin: Any) -> Path:
    """The folder of a finished run."""
    assert fedkin("run", "fedavg", *QUICK, "--out", "here").code == 0
    Path("mine").write_text(WRITTEN)
    Path("others").mkdir()
    Path("others/round-000009.safetensors").write_text(WRITTEN)
    return Path("here")


def test_a_link_beside_the_report_is_not_written_through(fedkin: Any, finished: Path) -> None:
    finished.joinpath(".report.html.part").symlink_to(Path("mine").resolve())
    assert fedkin("report", "here").code == 0
    assert Path("mine").read_text() == WRITTEN
    assert not finished.joinpath("report.html").is_symlink()


@pytest.mark.parametrize(
    "link", [".lock", "fedavg/seed-0/.lock", "fedavg/seed-0/rounds.jsonl", "fedavg/seed-0/kin", "fedavg"]
)
def test_a_run_does_not_go_on_where_links_are(fedkin: Any, finished: Path, link: str) -> None:
    place = finished / link
    if place.is_dir():
        place.rename("moved")
    elif place.exists():
        place.unlink()
    place.symlink_to(Path("others" if place.suffix == "" and "lock" not in link else "mine").resolve())
    outcome = fedkin("run", "--resume", "here", "--rounds", "4")
    assert outcome.code == 2, outcome.err
    assert "is a symbolic link" in outcome.err
    assert Path("mine").read_text() == WRITTEN
    assert os.listdir("others") == ["round-000009.safetensors"]


def test_the_folder_itself_may_be_a_link(fedkin: Any) -> None:
    Path("disk").mkdir()
    Path("here").symlink_to("disk")
    assert fedkin("run", "fedavg", *QUICK, "--out", "here").code == 0
    assert Path("disk/summary.json").exists()


def test_files_are_made_beside_without_following(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text(WRITTEN)
    for name in (".new.part", "new"):
        (tmp_path / name).symlink_to(mine)
    files.write(tmp_path / "new", b"other")
    assert (tmp_path / "new").read_bytes() == b"other"
    assert mine.read_text() == WRITTEN


def test_a_lock_is_not_written_through_a_link(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text(WRITTEN)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / files.LOCK).symlink_to(mine)
    with pytest.raises(OSError), files.alone(tmp_path / "theirs"):
        pass
    assert mine.read_text() == WRITTEN


def test_half_written_files_of_a_kill_go_when_the_run_goes_on(fedkin: Any, finished: Path) -> None:
    left = finished / "fedavg/seed-0/checkpoints/.round-000001.safetensors.part"
    left.write_text("half")
    assert fedkin("run", "--resume", "here", "--rounds", "3").code == 0
    assert not left.exists()


def test_checkpoints_come_by_their_number(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for round in (999_998, 999_999, 1_000_000):
        folder.write_checkpoint(round, {}, {"round": round, "lengths": {}, "time": {}}, 2)
    (tmp_path / "checkpoints/round-x.json").write_text("no checkpoint")
    assert [path.stem for path in folder.checkpoints()] == ["round-1000000", "round-999999"]
