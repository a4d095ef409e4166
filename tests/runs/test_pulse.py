"""A round that takes long says how far it is; a quick one says nothing, and neither changes what comes out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small import same_runs

import fedkin as fk
from fedkin.runs import session
from fedkin.runs.pulse import Doing, Pulse

DATA = fk.Data("digits", clients=6, irrelevant="flip:0.34")


class Ear(fk.Callback):
    """Hears how far a run is."""

    def __init__(self) -> None:
        self.heard: list[Doing] = []

    def working(self, doing: Doing) -> None:
        self.heard.append(doing)


def test_a_pulse_passes_on_only_now_and_then() -> None:
    now: list[float] = [0.0]
    heard: list[Doing] = []
    pulse = Pulse(heard.append, 10, every=0.5, clock=lambda: now[0])
    for step in range(100):
        now[0] = step * 0.1
        pulse("training clients", step, 100)
    assert [doing.done for doing in heard] == [*range(5, 100, 5)]


def test_words() -> None:
    assert str(Doing(3, 10, "training clients", 140.4, 500)) == "round 3 of 10: training clients, 140 of 500 (28 %)"
    assert str(Doing(0, 10, "training clients", 0, 0)) == "before round 1: training clients, 0 of 0 (0 %)"


@pytest.mark.parametrize("engine", ["stacked", "plain"])
def test_every_part_of_a_long_round_tells_how_far_it_is(
    engine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With a pulse that passes everything on: training, inverting and scoring are all heard, and change nothing."""
    method = fk.methods.pfedre()
    method = replace(method, keep=replace(method.keep, iterations=3))  # type: ignore[type-var]
    experiment = fk.Experiment(method, DATA, rounds=2, evaluate_every=2, engine=engine, chunk=4)
    fk.run(experiment, tmp_path / "quiet")
    monkeypatch.setattr(session, "Pulse", lambda heard, rounds: Pulse(heard, rounds, every=0.0))
    ear = Ear()
    fk.run(experiment, tmp_path / "heard", callbacks=[ear])
    same_runs(tmp_path / "quiet", tmp_path / "heard")
    by_round: dict[int, list[str]] = {}
    for doing in ear.heard:
        assert 0 < doing.done <= doing.of
        by_round.setdefault(doing.round, []).append(doing.what)
    first = list(dict.fromkeys(by_round[1]))
    assert first == ["training clients", "inverting updates"], "round 1 is not scored"
    assert {"training clients", "inverting updates", "scoring samples"} <= set(by_round[2])
    training = [doing for doing in ear.heard if doing.what == "training clients" and doing.round == 1]
    assert len(training) > 6, "also within a chunk of clients"
    assert [doing.done for doing in training] == sorted(doing.done for doing in training)
    assert training[-1].done == pytest.approx(training[-1].of)
    inverting = [doing for doing in ear.heard if doing.what == "inverting updates" and doing.round == 1]
    assert inverting[-1].done == inverting[-1].of


def test_a_quick_run_says_nothing() -> None:
    ear = Ear()
    fk.run(fk.Experiment(fk.methods.fedavg(), fk.Data("synthetic", clients=4), rounds=2), callbacks=[ear])
    assert ear.heard == []


def test_personal_models_and_received_ones_are_told_as_scoring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "Pulse", lambda heard, rounds: Pulse(heard, rounds, every=0.0))
    for name, expected in (("fedavg", "scoring: training clients"), ("pfedme", "training clients")):
        ear = Ear()
        method: Any = fk.methods.named(name)
        fk.run(fk.Experiment(method, DATA, rounds=1), callbacks=[ear])
        assert expected in {doing.what for doing in ear.heard}, name
