"""What is recorded of a round with few neighbours or many clients, and what is said before a run of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

import fedkin as fk
from fedkin.collaborate import (
    ComponentAttention,
    HeuristicMessagePassing,
    MeanBefore,
    MessagePassing,
    SimilarityThreshold,
)

PARTS: list[Any] = [
    ComponentAttention(sigma=5.0),
    SimilarityThreshold(p=0.5),
    MessagePassing(alpha=500.0, sigma=20.0, granularity="tensor"),
    HeuristicMessagePassing(sigma=5.0),
]
NAMES = [type(part).__name__ for part in PARTS]
SHAPES = {"1.weight": (3, 4), "1.bias": (3,), "3.weight": (2, 3), "3.bias": (2,)}
M = 23
TASK = fk.Task(9000, torch.ones(9000), 1, {}, lambda *_: torch.zeros(()))


def sent(part: Any, m: int = M, n: int = 30) -> fk.Kin:
    gen = torch.Generator().manual_seed(0)
    model = {name: torch.randn(shape, generator=gen).double() for name, shape in SHAPES.items()}
    stack = {name: value + torch.randn(m, *value.shape, generator=gen).double() for name, value in model.items()}
    task = fk.Task(n, torch.ones(n), 1, model, lambda *_: torch.zeros(()), seed=4)
    kin = part.send(part.init(task), task, torch.arange(m) + n - m, stack)[0].kin
    assert kin is not None
    return kin


@pytest.mark.parametrize("part", PARTS, ids=NAMES)
def test_the_record_of_few_neighbours(part: Any) -> None:
    few = sent(replace(part, neighbours=5))
    assert all(value.shape == few.nearest[name].shape == (M, 5) for name, value in few.weights.items())
    assert all((value[:, 0] == few.ids).all() for value in few.nearest.values())
    whole = few.whole()
    assert not whole.nearest
    for name, value in whole.weights.items():
        assert value.shape == (M, M)
        for row, client in ((0, 7), (M - 1, 29)):
            by_hand = dict(zip(few.nearest[name][row].tolist(), few.weights[name][row].tolist(), strict=True))
            assert value[row].tolist() == [by_hand.get(j, 0.0) for j in few.sources.tolist()]
            assert float(whole.own(name)[row]) == float(few.own(name)[row]) == by_hand[client]
    assert few.log() == pytest.approx(whole.log())
    assert 0 < few.log()["dropped_weight"] < 1
    assert "dropped_weight" not in sent(part).log()


def test_the_largest_weights_of_a_record() -> None:
    part = ComponentAttention(sigma=3.0)
    for kin in (sent(part), sent(replace(part, neighbours=7))):
        largest = kin.largest(3)
        for name, value in kin.whole().weights.items():
            expected, at = value.topk(3, dim=1)
            assert torch.equal(largest.weights[name], expected)
            assert torch.equal(largest.nearest[name], kin.sources[at])


@pytest.mark.parametrize("neighbours", [None, 3])
def test_a_run_writes_all_weights_of_few_clients_and_the_largest_of_many(
    federate: Any, neighbours: int | None, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = fk.methods.fedmcsa(count=6, sigma=2.0, steps=2)
    method = replace(method, collaborate=replace(method.collaborate, sketch=4, neighbours=neighbours))
    experiment = fk.Experiment(method, federate((9, 9, 7, 5, 9, 8, 9)), model="mlr", rounds=2, evaluate_every=1)
    small = fk.run(experiment, tmp_path / "small")
    monkeypatch.setattr("fedkin.runs.recorder.WHOLE", 35)
    monkeypatch.setattr("fedkin.runs.recorder.NEAREST", 2)
    large = fk.run(experiment, tmp_path / "large")
    for r in (1, 2):
        whole, few = small.kin()[r], large.kin()[r]
        assert whole.weights["1"].shape == (6, 6)
        assert not whole.nearest
        assert few.weights["1"].shape == few.nearest["1"].shape == (6, 2)
        torch.testing.assert_close(few.weights["1"], whole.weights["1"].topk(2, dim=1).values)
        assert (whole.weights["1"] > 0).sum(1).tolist() == [neighbours or 6] * 6
    said = small.lines[-1]["collaborate"]
    assert ("dropped_weight" in said) == (neighbours is not None)
    assert small.lines[-1]["accuracy"] == large.lines[-1]["accuracy"]


def test_very_many_clients_are_advised_to_compare_less() -> None:
    [both] = ComponentAttention().cautions(TASK, 1.0)
    assert "9000 clients are compared" in both
    assert "set collaborate.sketch=64 and collaborate.neighbours=20." in both
    [one] = SimilarityThreshold(sketch=64).cautions(TASK, 1.0)
    assert one.endswith("set collaborate.neighbours=20.")
    assert MessagePassing(sketch=9, neighbours=9).cautions(TASK, 1.0) == []
    assert HeuristicMessagePassing().cautions(TASK, 0.5) == [], "4,500 in a round"
    assert SimilarityThreshold().cautions(TASK, 0.5) == []
    assert len(SimilarityThreshold(pool="all").cautions(TASK, 0.5)) == 1
    assert MeanBefore().cautions(TASK, 1.0) == [], "a mean compares nobody"


@pytest.mark.parametrize("field", ["sketch", "neighbours"])
def test_at_least_one_number_and_one_neighbour(field: str) -> None:
    with pytest.raises(fk.BadInput, match=f"collaborate.{field} must be at least 1, not 0"):
        SimilarityThreshold(**{field: 0})  # type: ignore[arg-type]
