"""Callbacks are told of every round and every checkpoint, and may stop a run."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest

import fedkin as fk


class Ear(fk.Callback):
    def __init__(self, until: int = 99) -> None:
        self.until = until
        self.records: list[fk.Record] = []
        self.checkpoints: list[int] = []

    def recorded(self, record: fk.Record) -> bool:
        self.records.append(record)
        return record.round < self.until

    def saved(self, round: int) -> None:
        self.checkpoints.append(round)


def experiment(rounds: int = 4) -> fk.Experiment:
    return fk.Experiment(fk.methods.fedmcsa(count=3), fk.Data("digits", clients=5), rounds=rounds, evaluate_every=2)


def test_a_callback_hears_every_round() -> None:
    ear = Ear()
    result = fk.run(experiment(), callbacks=[ear])
    assert [record.line for record in ear.records] == result.lines
    assert [record.accuracy is not None for record in ear.records] == [False, True, False, True]
    last = ear.records[-1]
    assert (last.round, last.rounds, last.trained) == (4, 4, 5)
    assert last.scores is not None
    assert last.scores["post"].accuracy.tolist() == result.accuracies["post"].tolist()
    assert last.kin is not None
    assert last.kin.ids.tolist() == last.selected.tolist()


def test_a_brief_record_says_the_same_without_tensors() -> None:
    ear = Ear()
    fk.run(experiment(2), callbacks=[ear])
    brief = ear.records[-1].brief()
    assert brief.line == ear.records[-1].line
    assert brief.accuracy == ear.records[-1].accuracy
    assert brief.scores is None
    assert brief.kin is None


def test_a_callback_stops_a_run_and_every_callback_hears_the_round(tmp_path: Path) -> None:
    first, second = Ear(until=2), Ear()
    result = fk.run(experiment(), tmp_path / "run", callbacks=[first, second], checkpoint_seconds=0)
    assert not result.finished
    assert [len(ear.records) for ear in (first, second)] == [2, 2]
    assert first.checkpoints[-1] == 2
    assert fk.run(experiment(), tmp_path / "run", resume=True).finished


def test_what_is_no_callback_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(fk.BadInput, match=r"derived from fk\.Callback"):
        fk.run(experiment(), tmp_path / "run", callbacks=[print])
    assert not (tmp_path / "run").exists()


def test_the_seconds_of_rounds_add_up_to_those_of_the_run() -> None:
    result = fk.run(experiment())
    for name in ("train_s", "mix_s", "evaluate_s"):
        total = sum(line["seconds"].get(name, 0.0) for line in result.lines)
        assert result.summary["time"][name] == pytest.approx(total, abs=1e-3)


class Reads(fk.Callback):
    """Looks into the folder of a run from outside, as a process would that survives its kill."""

    def __init__(self, folder: Path, fails: bool = False) -> None:
        self.folder, self.fails, self.rounds, self.most = folder, fails, [], 0

    def recorded(self, record: fk.Record) -> None:
        lines = (self.folder / "rounds.jsonl").read_bytes().split(b"\n")
        assert lines[-1] == b""
        self.rounds.append(json.loads(lines[-2])["round"])
        assert len(lines) - 1 == record.round
        assert (self.folder / "selected.bin").stat().st_size == 4 * 3 * record.round
        self.most = max(self.most, len(open_files(self.folder)))
        assert not (self.fails and record.round == 2), "as a bug would"


def open_files(folder: Path) -> list[Path]:
    """The files of a folder that this process holds open, but for the lock."""
    found = [path.resolve() for path in Path("/proc/self/fd").iterdir()]
    return [path for path in found if path.parent == folder and path.name != ".lock"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux says which files are open")
def test_every_round_is_the_systems_when_it_is_told_of_and_files_are_closed_in_the_end(tmp_path: Path) -> None:
    looks = Reads(tmp_path / "run")
    fk.run(experiment(4), looks.folder, callbacks=[looks])
    assert looks.rounds == [1, 2, 3, 4]
    assert looks.most >= 3
    assert open_files(looks.folder) == []
    fails = Reads(tmp_path / "other", fails=True)
    with pytest.raises(AssertionError, match="as a bug would"):
        fk.run(experiment(4), fails.folder, callbacks=[fails])
    gc.collect()
    assert open_files(fails.folder) == []
