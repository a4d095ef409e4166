"""How much memory private models may take, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from small import forget_checksums

import fedkin as fk
from fedkin.core.store import BUDGET
from fedkin.runs import files, memory
from fedkin.runs.setup import set_up

EXPERIMENT = fk.Experiment(fk.methods.ditto(count=2), fk.Data("digits", clients=8), rounds=2, chunk=4)


@pytest.mark.parametrize(
    ("said", "bytes"),
    [
        (2, 2e9),
        (0.5, 5e8),
        ("2", 2e9),
        ("2GB", 2e9),
        ("1.5 gb", 1.5e9),
        ("500MB", 5e8),
        ("64KB", 64e3),
        (0, 0),
        ("7B", 7),
    ],
)
def test_what_is_said_in_bytes(said: float | str, bytes: float) -> None:
    assert memory.in_bytes(said) == bytes


@pytest.mark.parametrize("said", ["much", "-1", -1, "2 PB", "", True, [2]])
def test_what_is_no_memory_is_refused(said: object) -> None:
    with pytest.raises(fk.BadInput, match="number of gigabytes from 0, or a text such as 500MB"):
        fk.Experiment(fk.methods.ditto(), memory=said)  # type: ignore[arg-type]


def test_too_little_for_one_chunk_says_how_much_is_needed() -> None:
    data = fk.data.load(EXPERIMENT.data)  # a personal model of 650 numbers
    with pytest.raises(fk.BadInput, match=r"--memory 1KB is too little for 4 clients at once.* 10\.4KB; give --memory"):
        set_up(replace(EXPERIMENT, memory="1KB"), data)
    assert set_up(replace(EXPERIMENT, memory="10.4KB"), data).memory == 10_400
    assert set_up(replace(EXPERIMENT, memory=0), data).memory == 0


def test_by_default_half_of_what_is_free_but_not_much(monkeypatch: pytest.MonkeyPatch) -> None:
    data = fk.data.load(EXPERIMENT.data)
    assert 2**20 < memory.free() < 2**50
    for free, found in ((10**8, 5 * 10**7), (10**12, BUDGET)):
        monkeypatch.setattr(memory, "free", lambda free=free: free)
        assert set_up(EXPERIMENT, data).memory == found
    monkeypatch.setattr(memory, "free", lambda: 10)
    assert memory.budget(None, 4, 650 * 4) == 4 * 650 * 4


def test_what_older_versions_called_it_is_read(tmp_path: Path) -> None:
    stored = json.loads(json.dumps(EXPERIMENT.described()))
    del stored["memory"]
    assert fk.Experiment.from_json(stored | {"slot_memory": 0.25}).memory == 0.25
    fk.run(EXPERIMENT, tmp_path / "old")
    forget_checksums(tmp_path / "old")
    about = files.read_json(tmp_path / "old" / "experiment.json")
    del about["memory"], about["score_clients"]
    files.write_json(tmp_path / "old" / "experiment.json", about | {"slot_memory": 4.0})
    assert fk.run(replace(EXPERIMENT, rounds=3), tmp_path / "old", resume=True).summary["rounds"] == 3


@pytest.mark.parametrize(
    ("size", "text"), [(10_400, "10.4KB"), (999, "999B"), (318_040 * 100, "31.9MB"), (3 * 10**9, "3GB")]
)
def test_bytes_as_one_reads_them(size: int, text: str) -> None:
    assert memory.readable(size) == text
    assert memory.in_bytes(text) >= size
