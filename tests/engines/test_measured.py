"""What is chosen by a measurement is measured once, and holds."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import fedkin as fk
from fedkin.core import tree
from fedkin.engines import Stacked, measured, rehearsal
from fedkin.engines.convolution import WAYS
from fedkin.engines.network import Network
from fedkin.models import build


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing was measured yet."""
    monkeypatch.setenv("FEDKIN_CACHE", str(tmp_path))
    monkeypatch.setattr(measured, "known", {})
    return tmp_path / "measured"


def slow(times: list[str], name: str, milliseconds: float) -> Any:
    def work() -> None:
        times.append(name)
        time.sleep(milliseconds / 1000)

    return work


def test_the_quickest_is_taken_and_asked_for_only_once(elsewhere: Path) -> None:
    done: list[str] = []
    answers = {"slow": (slow(done, "slow", 4), 1), "quick": (slow(done, "quick", 0.5), 1)}
    assert measured.quickest("which?", answers) == "quick"
    seen = len(done)
    assert measured.quickest("which?", answers) == "quick"
    measured.known.clear()  # as in another process
    assert measured.quickest("which?", answers) == "quick"
    assert len(done) == seen
    assert len(list(elsewhere.iterdir())) == 1


def test_times_are_divided_by_clients() -> None:
    answers = {"one": (slow([], "", 1), 1), "ten": (slow([], "", 3), 10)}
    assert measured.quickest("how many?", answers) == "ten"


def test_of_two_processes_the_first_has_its_way(elsewhere: Path) -> None:
    file = elsewhere / "question.json"
    assert measured.remember(file, "?", "first", {}) == "first"
    assert measured.remember(file, "?", "second", {}) == "first"
    file.write_text("{")
    assert measured.remembered(file) == ""
    assert measured.remember(file, "?", "second", {}) == "second"
    assert json.loads(file.read_text())["answer"] == "second"
    assert [path.name for path in elsewhere.iterdir()] == ["question.json"]


def test_an_answer_of_another_version_is_measured_again(elsewhere: Path) -> None:
    answers = {"a": (slow([], "", 0.1), 1)}
    measured.quickest("which?", answers)
    (file,) = elsewhere.iterdir()
    file.write_text(json.dumps({"answer": "gone"}))
    measured.known.clear()
    assert measured.quickest("which?", answers) == "a"


def test_a_folder_that_cannot_be_written_to_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDKIN_CACHE", str(tmp_path / "file"))
    (tmp_path / "file").touch()
    done: list[str] = []
    answers = {"a": (slow(done, "a", 0.1), 1)}
    assert measured.quickest("which?", answers) == measured.quickest("which?", answers) == "a"
    assert len(done) == measured.REPEATS + 1


def net(spec: str, shape: tuple[int, ...]) -> Network:
    return Network(build(spec, shape, 10, 0), torch.zeros(shape), 4)


def test_a_rehearsal_changes_nothing() -> None:
    network = net("lenet", (3, 32, 32))
    before, way = tree.mapped(torch.clone, network.model), network.fused.way  # type: ignore[union-attr]
    for name in WAYS:
        rehearsal.rehearsed(network, 2, name)()
    assert all(torch.equal(network.model[key], value) for key, value in before.items())
    assert network.fused.way is way  # type: ignore[union-attr]


@pytest.mark.parametrize(("spec", "shape"), [("mlr", (7,)), ("dnn:100", (784,)), ("cnn", (1, 28, 28))])
def test_an_engine_takes_the_chunk_and_the_way_that_were_the_quickest(
    spec: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def last(question: str, answers: dict[str, Any]) -> str:
        asked.append(question.partition(" of ")[0])
        for work, _ in answers.values():
            work()
        return list(answers)[-1]

    monkeypatch.setattr(rehearsal, "quickest", last)
    samples = {"a": (torch.zeros(4, *shape), torch.zeros(4, dtype=torch.int64))}
    fed, part = fk.from_clients(samples, test=0.0), fk.train.SGD(batch=4)
    engine = Stacked(fed, build(spec, shape, 1, 0), part, 0)
    assert engine.chunk == {"mlr": 200, "dnn:100": 200, "cnn": 20}[spec]
    expected = {"mlr": [], "dnn:100": ["clients at once"], "cnn": ["way", "way", "clients at once"]}[spec]
    assert asked == expected
    if spec == "cnn":
        assert engine.network.fused.way is WAYS["looped"]  # type: ignore[union-attr]
    engine.close()
