"""What can be made again of a damaged run is made again, to the same bits: summary, models, the last rounds."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import tiny_preset
from small import same_runs

import fedkin as fk
from fedkin.reproduce.play import play, runs_of
from fedkin.reproduce.store import Store
from fedkin.runs import files, manifest
from fedkin.runs.files import Damaged
from fedkin.runs.folder import RunFolder

EXPERIMENT = fk.Experiment(fk.methods.ditto(count=2), fk.Data("digits", clients=4), rounds=6, evaluate_every=2)


class Rounds(fk.Callback):
    """Notes which rounds are played."""

    def __init__(self) -> None:
        self.played: list[int] = []

    def recorded(self, record: fk.Record) -> None:
        self.played.append(record.round)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with a checkpoint of every round, of which the last two are kept."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    fk.run(EXPERIMENT, folder, checkpoint_seconds=-1, warn=print)
    assert [path.stem for path in RunFolder(folder).checkpoints()] == ["round-000006", "round-000005"]
    return folder


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def gone_on(whole: Path, tmp_path: Path, *damaged: str, lost: tuple[str, ...] = ()) -> tuple[list[int], list[str]]:
    """Damage files of a copy of a run, go on with it, and return the rounds that were played and what was said."""
    shutil.copytree(whole, tmp_path / "here")
    for name in damaged:
        flip(tmp_path / "here" / name)
    for name in lost:
        (tmp_path / "here" / name).unlink()
    said: list[str] = []
    rounds = Rounds()
    fk.run(EXPERIMENT, tmp_path / "here", resume=True, callbacks=[rounds], warn=said.append)
    same_runs(whole, tmp_path / "here")
    assert not manifest.damaged(tmp_path / "here")
    return rounds.played, said


@pytest.mark.parametrize("name", ["summary.json", "models.safetensors", "predictions.safetensors", "manifest.json"])
def test_what_comes_last_is_made_again_without_training(whole: Path, tmp_path: Path, name: str) -> None:
    played, said = gone_on(whole, tmp_path, name)
    assert played == []
    assert any(name in sentence for sentence in said)


def test_a_lost_summary_is_computed_from_the_rounds(whole: Path, tmp_path: Path) -> None:
    assert gone_on(whole, tmp_path, lost=("summary.json",))[0] == []


def test_the_checkpoint_before_is_taken_and_the_last_round_trained_again(whole: Path, tmp_path: Path) -> None:
    played, said = gone_on(whole, tmp_path, "models.safetensors", "checkpoints/round-000006.safetensors")
    assert played == [6]
    assert any("round-000006 is damaged" in sentence and "one before" in sentence for sentence in said)


def test_a_damaged_line_of_the_last_round_is_played_again(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "copy")
    lines = (tmp_path / "copy/rounds.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "copy/rounds.jsonl").write_text("".join(lines[:-1]) + lines[-1].replace("1", "2"))
    rounds = Rounds()
    fk.run(EXPERIMENT, tmp_path / "copy", resume=True, callbacks=[rounds], warn=lambda sentence: None)
    assert rounds.played == [6]
    same_runs(whole, tmp_path / "copy")


def test_without_any_checkpoint_all_rounds_are_played_again(whole: Path, tmp_path: Path) -> None:
    names = [f"checkpoints/{path.name}" for path in (whole / "checkpoints").iterdir()]
    assert gone_on(whole, tmp_path, "models.safetensors", lost=tuple(names))[0] == [1, 2, 3, 4, 5, 6]


def test_where_every_checkpoint_is_damaged_all_rounds_are_played_again(whole: Path, tmp_path: Path) -> None:
    names = [f"checkpoints/round-00000{k}.safetensors" for k in (5, 6)]
    played, said = gone_on(whole, tmp_path, "models.safetensors", *names)
    assert played == [1, 2, 3, 4, 5, 6]
    assert "going back to round 1: there is no good one before it" in " ".join(said)


def test_a_damaged_record_of_rounds_is_played_again(whole: Path, tmp_path: Path) -> None:
    """Every checkpoint counts on what was recorded before it."""
    assert gone_on(whole, tmp_path, "kept.bin")[0] == [1, 2, 3, 4, 5, 6]


def test_a_checkpoint_that_may_not_be_read_is_not_taken_for_damaged(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(whole, tmp_path / "copy")
    (tmp_path / "copy/models.safetensors").unlink()

    known = files.checksum

    def forbidden(path: Path) -> str:
        if path.parent.name == "checkpoints":
            raise PermissionError(13, "Permission denied", str(path))
        return known(path)

    monkeypatch.setattr(files, "checksum", forbidden)
    with pytest.raises(fk.BadInput, match=r"Permission denied.*make it readable"):
        fk.run(EXPERIMENT, tmp_path / "copy", resume=True, warn=lambda sentence: None)
    monkeypatch.undo()
    fk.run(EXPERIMENT, tmp_path / "copy", resume=True, warn=lambda sentence: None)
    same_runs(whole, tmp_path / "copy")


# folders of others


@pytest.fixture
def theirs(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "theirs")
    (tmp_path / "mine").write_text("mine")
    return tmp_path / "theirs"


@pytest.mark.parametrize("name", ["../mine", "/etc/hostname", "kin/../../mine", "..", "a/b/c", ".lock"])
def test_a_manifest_deletes_nothing_elsewhere(theirs: Path, name: str) -> None:
    """What is damaged is removed, to be made again; so a manifest must not name what lies outside."""
    known = json.loads((theirs / "manifest.json").read_text())["files"]
    (theirs / "manifest.json").write_text(json.dumps(manifest.sealed({"files": known | {name: [1, "x"]}})))
    with pytest.raises(Damaged, match="names no files of this folder"):
        manifest.read(theirs)
    fk.run(EXPERIMENT, theirs, resume=True, warn=lambda sentence: None)
    assert (theirs.parent / "mine").read_text() == "mine"
    same_runs(theirs, theirs)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lengths", []),
        ("lengths", {"../mine": 1}),
        ("lengths", {"rounds.jsonl": "x"}),
        ("lengths", {"rounds.jsonl": -1}),
        ("digests", {"../mine": "x"}),
        ("digests", 5),
        ("round", "6"),
        ("time", None),
        ("time", {"total_s": 1.0}),
        ("drawn", [1]),
        ("segments", [{"file": "../mine", "rows": 1, "checksum": "x"}]),
        ("checksum", None),
    ],
)
def test_a_checkpoint_of_another_shape_is_a_damaged_one(theirs: Path, key: str, value: Any) -> None:
    path = theirs / "checkpoints/round-000006.json"
    about = {name: inner for name, inner in json.loads(path.read_text()).items() if name != "seal"}
    path.write_text(json.dumps(manifest.sealed(about | {key: value})))
    (theirs / "summary.json").unlink()
    said: list[str] = []
    rounds = Rounds()
    fk.run(EXPERIMENT, theirs, resume=True, callbacks=[rounds], warn=said.append)
    assert rounds.played == [6]
    assert any("round-000006 is damaged" in sentence for sentence in said)
    assert (theirs.parent / "mine").read_text() == "mine"


def test_nothing_is_mended_through_a_link(theirs: Path) -> None:
    (theirs / "models.safetensors").unlink()
    os.symlink(theirs.parent / "mine", theirs / "models.safetensors")
    with pytest.raises(fk.BadInput, match="is a symbolic link"):
        fk.run(EXPERIMENT, theirs, resume=True, warn=print)
    assert (theirs.parent / "mine").read_text() == "mine"


# commands


def test_summaries_of_methods_are_checked_too(fedkin: Any) -> None:
    assert (
        fedkin("compare", "fedavg", "--data", "synthetic", "--clients", "3", "--rounds", "2", "--out", "here").code == 0
    )
    assert fedkin("check", "here").code == 0
    flip(Path("here/fedavg/summary.json"))
    outcome = fedkin("check", "here")
    assert outcome.code == 1
    assert "here/fedavg/summary.json: damaged or missing" in outcome.out


def test_runs_of_presets_are_checked_and_mended(tmp_path: Path) -> None:
    store = Store(tmp_path / "presets")
    runs = runs_of([tiny_preset.tiny()], store)[:1]
    play(runs, store, warn=print)
    folder = runs[0].folder.path
    shutil.copytree(folder, tmp_path / "before")
    flip(folder / "summary.json")
    with pytest.raises(Damaged, match=r"summary\.json is damaged"):
        store.finished(runs[0].experiment)
    said: list[str] = []
    play(runs, store, warn=said.append)
    assert any("summary.json" in sentence for sentence in said)
    same_runs(tmp_path / "before", folder)
    (folder / "experiment.json").unlink()
    with pytest.raises(fk.BadInput, match="a summary and no experiment"):
        store.finished(runs[0].experiment)
