"""FedFomo: what each client makes of the models it is offered, by scalars and loops, in float64."""

from __future__ import annotations

from math import sqrt
from typing import Any

import hand_network as net
import pytest
import torch
import transcribed as by_hand
from hand_network import ROUNDS, Model
from small import seen_round
from transcribed import Hand

from fedkin.collaborate import Offers
from fedkin.errors import BadInput
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import MixingItself

TRAIN, TEST = (2, 3, 7, 11, 25, 4, 9), (3, 0, 5, 9, 4, 2, 3)


def composed(models: int, count: int = 7, **train: Any) -> Method:
    part = MixingItself(**({"eta": 0.3, "steps": 3, "batch": 4} | train))
    return Method("tried", Uniform(count=count), part, Everyone(), Offers(models))


def held_out(hand: Hand, client: int) -> set[int]:
    """The rows of a client's samples that it does not train on: a random choice, taken from fedkin."""
    train: Any = hand.method.train
    if train.validate is None:
        return set()
    rows, start = hand.federation.train[client].tolist(), sum(hand.sizes[:client])
    folds = hand.engine.batching.folded(train).of[int(start) :].tolist()
    return {row for row, fold in zip(rows, folds, strict=False) if fold == 0}


def loss(hand: Hand, model: Model, client: int) -> float:
    rows = held_out(hand, client) or hand.federation.train[client].tolist()
    return net.scored(model, [(hand.x[row], hand.y[row]) for row in rows])[1] / len(rows)


def batches(hand: Hand, t: int, client: int) -> list[Any]:
    """The mini-batches of a round, without what is held out. One with nothing left has no gradient."""
    plan, out = hand.engine.batching.planned(hand.method.train, t, torch.tensor([client])), held_out(hand, client)
    found = []
    for rows, count in zip(plan.rows[:, 0].tolist(), plan.count[:, 0].tolist(), strict=True):
        found.append([(hand.x[row], hand.y[row]) for row in rows[:count] if row not in out])
    return [some for some in found if some]


def apart(one: Model, other: Model) -> float:
    return sqrt(sum((p - q) ** 2 for p, q in zip(net.numbers(one), net.numbers(other), strict=True)))


def offered(theta: list[Model], ids: list[int], liking: list[list[float]], i: int, count: int) -> list[int]:
    others = sorted((j for j in ids if j != i), key=lambda j: (-liking[i][j], apart(theta[i], theta[j]), j))
    return others[:count] or [i]


CASES = {
    "all": composed(9),
    "two": composed(2),
    "half": composed(2, validate=2, steps=None, epochs=2),
    "none held out": composed(9, validate=None),
    "some take part": composed(3, 4, validate=None),
    "alone": composed(3, 1),
}


def test_the_samples_held_out_are_a_share() -> None:
    assert composed(2, validate=5).train.folds == 5
    with pytest.raises(BadInput, match="leaves no sample to train on"):
        composed(2, validate=1)


@pytest.mark.parametrize("case", CASES)
def test_rounds(federation: Any, started: Any, case: str) -> None:
    method = CASES[case]
    train: Any = method.train
    part: Any = method.collaborate
    hand = Hand(federation, method)
    engine, task, state = started(method)
    theta: list[Model] = [hand.first] * hand.n
    before: list[Model] = [hand.first] * hand.n
    liking = [[0.0] * hand.n for _ in range(hand.n)]
    mixtures = 0
    for t in range(1, ROUNDS + 1):
        state, log, _ = seen_round(method, task, engine, state)
        ids = hand.selected(t)
        after, gained = {}, {}
        for i in ids:
            several = [i, *offered(theta, ids, liking, i, part.models)]
            gains = []
            for j in several:
                far = apart(before[i], theta[j])
                gains.append((loss(hand, before[i], i) - loss(hand, theta[j], i)) / far if far > 1e-12 else 0.0)
            total = sum(max(gain, 0.0) for gain in gains)
            start = before[i]
            if total > 0.0:
                shares = [max(gain, 0.0) / total for gain in gains]
                start = net.combined(*((share, theta[j]) for share, j in zip(shares, several, strict=True)))
                mixtures += any(share > 0.0 and j != i for share, j in zip(shares, several, strict=True))
            after[i] = start, net.sgd(start, batches(hand, t, i), train.eta)
            gained[i] = list(zip(several, gains, strict=True))
        for i in ids:
            before[i], theta[i] = after[i]
            for j, gain in gained[i]:
                liking[i][j] += gain
        assert log.reply is not None
        assert by_hand.farthest(log.reply.upload["model"], [theta[i] for i in ids]) < 1e-9
        assert by_hand.farthest(engine.slots.read(torch.arange(hand.n))["model"], theta) < 1e-9
        assert state.collaborate["liking"].tolist() == [pytest.approx(row, abs=1e-8) for row in liking]
    assert (mixtures > 0) == (case != "alone")


def test_a_worse_model_is_never_mixed_in() -> None:
    """The classic mistake: gains below zero, which would push a client away from models that are worse for it."""
    method = composed(2)
    own = {"w": torch.tensor([0.0])}
    others = {"w": torch.tensor([[1.0], [-2.0]])}

    class Slope:
        def loss(self, model: Any, batch: Any) -> torch.Tensor:
            return model["w"].sum()

    mine = {"model": {"w": torch.tensor([1.5])}, "before": own}
    met = method.train.meet({"others": others}, mine, {}, Slope())  # type: ignore[arg-type]
    assert met["gains"]["of"].tolist() == [-1.0, -1.0, 1.0]
    assert met["model"]["w"].tolist() == [-2.0]
    worse = {"model": {"w": torch.tensor([1.5])}, "before": {"w": torch.tensor([-3.0])}}
    assert method.train.meet({"others": others}, worse, {}, Slope())["model"]["w"].tolist() == [-3.0]  # type: ignore[arg-type]


def test_who_is_better_than_the_start_is_mixed_in_beside_what_was_trained() -> None:
    """The classic mistake: others are compared with what the client has just trained, which fits its samples better
    than anything else, so that everybody trains alone."""
    method = composed(2)

    class Bowl:
        def loss(self, model: Any, batch: Any) -> torch.Tensor:
            return (model["w"] - 4.0).abs().sum()

    mine = {"model": {"w": torch.tensor([3.0])}, "before": {"w": torch.tensor([0.0])}}
    met = method.train.meet({"others": {"w": torch.tensor([[1.0], [-2.0]])}}, mine, {}, Bowl())  # type: ignore[arg-type]
    assert met["gains"]["of"].tolist() == [1.0, 1.0, -1.0]
    assert met["model"]["w"].tolist() == [2.0]


def test_who_learns_from_whom_is_what_clients_said(federation: Any, started: Any) -> None:
    method = composed(3)
    engine, task, state = started(method)
    for _ in range(3):
        state, log, _ = seen_round(method, task, engine, state)
    assert log.reply is not None
    kin = method.collaborate.send(state.collaborate, task, torch.arange(7), engine.current(torch.arange(7), "model"))[
        0
    ].kin
    assert kin is not None
    shares = kin.weights["model"]
    assert torch.allclose(shares.sum(1), torch.ones(7, dtype=torch.float64))
    gains = log.reply.upload["gains"]["of"]
    for i in range(7):
        positive = gains[i].clamp(min=0)
        wanted = positive / positive.sum() if positive.sum() > 0 else torch.ones(1, dtype=torch.float64)
        found, expected = (values[values > 0].sort().values.tolist() for values in (shares[i], wanted))
        assert found == pytest.approx(expected)
