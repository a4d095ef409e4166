"""pFedSim: a mean at first, then bodies mixed by the likeness of heads, by scalars and loops, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import Any

import hand_network as net
import pytest
import torch
import transcribed as by_hand
from hand_network import ROUNDS, A, B, Model, a, b
from transcribed import Hand, Round

import fedkin as fk
from fedkin.collaborate import ClassifierSimilarity
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD

TRAIN, TEST = (2, 3, 7, 11, 25, 4), (3, 0, 5, 9, 4, 2)
STEPS = SGD(eta=0.3, steps=3, batch=4)


def weighed(models: list[Model]) -> list[list[float]]:
    rows = []
    for one in models:
        row = []
        for other in models:
            cosines = [net.cosine(p, q) for p, q in zip(one[B], other[B], strict=True)]
            similar = min(max(sum(cosines) / len(cosines), 0.0), 0.9999)
            row.append(-log(1.0 - similar))
        rows.append([value / sum(row) for value in row])
    return rows


def mixed(models: list[Model], rows: list[list[float]]) -> list[Model]:
    bodies = by_hand.blended(rows, models)
    return [{A: body[A], a: body[a], B: own[B], b: own[b]} for body, own in zip(bodies, models, strict=True)]


def card(hand: Hand) -> Iterator[Round]:
    part: Any = hand.method.collaborate
    train: Any = hand.method.train
    first = int(part.warmup * ROUNDS)
    theta, common, seen = [hand.first] * hand.n, hand.first, [False] * hand.n
    for t in range(1, ROUNDS + 1):
        ids = hand.selected(t)
        if t <= first:
            sent = dict.fromkeys(ids, common)
        else:
            shown = [theta[i] if seen[i] else common for i in ids]
            sent = dict(zip(ids, mixed(shown, weighed(shown)), strict=True))
        received = [sent.get(i, theta[i]) for i in range(hand.n)]
        for i in ids:
            theta[i] = net.sgd(sent[i], hand.batches(t, i), train.eta)
            seen[i] = t > first
        if t <= first:
            common = net.average([theta[i] for i in ids], [hand.sizes[i] for i in ids])
        yield Round(sent, {i: theta[i] for i in ids}, {"model": theta}, theta, None, received)


def composed(warmup: float, count: int = 6) -> Method:
    return Method("tried", Uniform(count=count), STEPS, Everyone(), ClassifierSimilarity(warmup))


@pytest.mark.parametrize("count", [4, 6])
@pytest.mark.parametrize("warmup", [0.0, 0.34, 0.67, 1.0])
def test_rounds(checked: Any, warmup: float, count: int) -> None:
    checked(composed(warmup, count), card)


def test_pfedsim(checked: Any) -> None:
    checked(fk.methods.pfedsim(0.4, 5, eta=0.1, steps=2), card, again=True)


@pytest.mark.parametrize("kept", [[1.0] * 5, [1.0, 0.0, 0.5, 1.0, 0.25], [0.0] * 5])
def test_weights_and_mix(kept: list[float]) -> None:
    models, counts = by_hand.drawn(5, spread=0.9), torch.tensor(kept, dtype=torch.float64)
    part, rows = ClassifierSimilarity(0.0), by_hand.counted(weighed(models), kept)
    found = part.weights(by_hand.stack(models), counts)
    by_hand.same(found["0"], rows)
    assert torch.equal(found["2"], torch.eye(5, dtype=torch.float64))
    assert by_hand.farthest(part.mix(by_hand.stack(models), counts), mixed(models, rows)) < 1e-10


def test_bodies_do_not_say_who_is_alike() -> None:
    """A client with the head of another gets as much from it as from itself, whatever the two bodies are."""
    models = by_hand.drawn(4, spread=0.9)
    models[2] = {**models[2], B: models[0][B]}
    found = ClassifierSimilarity(0.0).weights(by_hand.stack(models), torch.ones(4, dtype=torch.float64))["0"]
    assert float(found[0, 2]) == pytest.approx(float(found[0, 0]))
    assert float(found[0, 2]) > 2 * max(float(found[0, 1]), float(found[0, 3]))
