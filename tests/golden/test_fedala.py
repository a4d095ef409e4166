"""FedALA: which numbers of the common model each client takes, by scalars and loops, in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hand_network as net
import pytest
import torch
import transcribed as by_hand
from hand_network import ROUNDS, A, B, Model, Sample, a, b
from small import seen_round
from transcribed import Hand

import fedkin as fk
from fedkin import evaluate
from fedkin.collaborate import Mean
from fedkin.keep import Everyone, Krum
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Blending

TRAIN, TEST = (2, 3, 7, 11, 25, 4, 9), (3, 0, 5, 9, 4, 2, 3)


def composed(count: int = 4, **train: Any) -> Method:
    part = Blending(**({"eta": 0.3, "eta_a": 20.0, "steps": 3, "batch": 4} | train))
    return Method("tried", Uniform(count=count), part, Everyone(), Mean())


def elementwise(f: Any, *models: Any) -> Any:
    """Apply f to the numbers at one place of nested lists."""
    if isinstance(models[0], list):
        return [elementwise(f, *some) for some in zip(*models, strict=True)]
    return f(*models)


def at_hand(hand: Hand, t: int, client: int) -> list[list[Sample]]:
    """The mini-batches on which the weights are learnt: a random choice, taken from fedkin."""
    train: Any = hand.method.train
    batch = hand.engine.batching.at_hand(train, t, torch.tensor([client]))
    some = [(x, int(y)) for x, y, w in zip(*(batch[k][0].tolist() for k in ("x", "y", "weight")), strict=True) if w]
    return [some[k : k + train.batch] for k in range(0, len(some), train.batch)]


def start(common: Model, own: Model, weights: Model) -> Model:
    blend = {
        name: elementwise(lambda g, mine, share: mine + share * (g - mine), common[name], own[name], weights[name])
        for name in weights
    }
    return common | blend


def learnt(hand: Hand, t: int, i: int, common: Model, own: Model, weights: Model) -> Model:
    train: Any = hand.method.train
    for _ in range(train.passes):
        for some in at_hand(hand, t, i):
            g = net.gradient(start(common, own, weights), some)

            def moved(share: float, slope: float, there: float, mine: float) -> float:
                return min(1.0, max(0.0, share - train.eta_a * slope * (there - mine)))

            weights = {name: elementwise(moved, weights[name], g[name], common[name], own[name]) for name in weights}
    return weights


CASES = {
    "head": (composed(), (B, b)),
    "all": (composed(last=None), (A, a, B, b)),
    "two passes, few samples": (composed(7, passes=2, samples=5), (B, b)),
    "epochs": (composed(steps=None, epochs=2, momentum=0.5), (B, b)),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(federation: Any, started: Any, case: str) -> None:
    method, names = CASES[case]
    train: Any = method.train
    hand = Hand(federation, method)
    engine, task, state = started(method)
    server = hand.first
    own: list[Model] = [hand.first] * hand.n
    weights: list[Model] = [{name: elementwise(lambda _: 1.0, hand.first[name]) for name in names}] * hand.n
    between = 0
    for t in range(1, ROUNDS + 1):
        state, log, _ = seen_round(method, task, engine, state)
        ids = hand.selected(t)
        for i in ids:
            weights[i] = learnt(hand, t, i, server, own[i], weights[i])
            own[i] = net.sgd(start(server, own[i], weights[i]), hand.batches(t, i), train.eta, train.momentum)
            between += any(0.0 < value < 1.0 for value in net.numbers({B: weights[i][B]}, (B,)))
        server = net.average([own[i] for i in ids], [hand.sizes[i] for i in ids])
        assert log.reply is not None
        assert by_hand.farthest(log.reply.upload["model"], [own[i] for i in ids]) < 1e-9
        slots = engine.slots.read(torch.arange(hand.n))
        assert by_hand.farthest(slots["personal"], own) < 1e-9
        for name in names:
            found = slots["blend"][name]
            torch.testing.assert_close(found, torch.tensor([of[name] for of in weights], dtype=found.dtype))
        assert set(slots["blend"]) == set(names)
        judged = evaluate.personal_models(method, task, engine, state, torch.arange(hand.n))
        assert by_hand.farthest(judged, own) < 1e-9
    assert between, "weights were learnt"


class Bowl:
    """A loss with its smallest value at w = 4."""

    def grad(self, model: Any, batch: Any) -> Any:
        return {"w": 2 * (model["w"] - 4.0)}


def met(own: float, common: float, weight: float, rate: float = 0.1) -> tuple[float, float]:
    """The start and the weight that a client learns in one step."""
    part = Blending(eta_a=rate)
    mine = {"personal": {"w": torch.tensor([own])}, "blend": {"w": torch.tensor([weight])}}
    batch = {"y": torch.zeros(3), "weight": torch.ones(3)}
    found = part.meet({"model": {"w": torch.tensor([common])}}, mine, batch, Bowl())  # type: ignore[arg-type]
    return float(found["model"]["w"]), float(found["blend"]["w"])


def test_a_client_keeps_its_own_number_where_the_common_one_is_worse() -> None:
    """The classic mistake: the sign, or the factor theta - theta_i left out of the slope of a weight."""
    assert met(own=4.0, common=5.0, weight=1.0) == pytest.approx((4.8, 0.8))  # 1 - .1 * 2 * 1 * 1
    assert met(own=4.0, common=3.0, weight=1.0) == pytest.approx((3.2, 0.8))
    assert met(own=2.0, common=4.0, weight=0.5) == pytest.approx((3.8, 0.9))  # .5 + .1 * 2 * 2
    assert met(own=0.0, common=3.0, weight=0.9, rate=9.0) == (3.0, 1.0)
    assert met(own=4.0, common=4.0, weight=0.3)[1] == pytest.approx(0.3), "nothing to learn where both are the same"


def test_a_filter_that_compares_with_the_start_is_refused() -> None:
    with pytest.raises(fk.BadInput, match="clients choose where they start"):
        replace(fk.methods.fedala(), keep=Krum(0.2))
