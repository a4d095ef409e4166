"""Training that diverges ends a run neither before its time nor for good, and engines agree on who is dropped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fedkin as fk

DIVERGING = ("--set", "train.lam=1000", "--set", "train.eta=0.1", "--data", "digits", "--clients", "5")


def test_a_diverging_run_is_recorded_and_goes_on(fedkin: Any) -> None:
    asked = ("run", "fedprox", *DIVERGING, "--heterogeneity", "--gradient-norm", "--evaluate-every", "1")
    assert fedkin(*asked, "--rounds", "9", "--out", "here").code == 0
    outcome = fedkin("run", "--resume", "here", "--rounds", "12")
    assert outcome.code == 0, outcome.err
    lines = [json.loads(line) for line in Path("here/fedprox/seed-0/rounds.jsonl").read_text().splitlines()]
    assert len(lines) == 12
    assert all(line["dropped"] == [0, 1, 2, 3, 4] for line in lines)


@pytest.mark.parametrize(("lam", "last"), [(1000.0, 5), (200.0, 5), (100.0, 5), (40.0, 0)])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_engines_agree_on_who_is_dropped(lam: float, last: int, momentum: float) -> None:
    method = fk.methods.fedprox()
    train = replace(method.train, lam=lam, eta=0.1, momentum=momentum, steps=10, epochs=None)  # type: ignore[call-arg]
    experiment = fk.Experiment(replace(method, train=train), fk.Data("digits", clients=5), rounds=5, evaluate_every=5)
    dropped = [
        [line.get("dropped", []) for line in fk.run(replace(experiment, engine=engine), warn=print).lines]
        for engine in ("stacked", "plain")
    ]
    assert dropped[0] == dropped[1]
    assert momentum or len(dropped[0][-1]) == last
