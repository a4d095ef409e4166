"""FedDWA: distances to where each client is going, the k nearest, by scalars and loops, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hand_network as net
import pytest
import torch
import transcribed as by_hand
from hand_network import ROUNDS, Model
from transcribed import Hand, Round

import fedkin as fk
from fedkin.collaborate import Ahead
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD

TRAIN, TEST = (2, 3, 7, 11, 25, 4), (3, 0, 5, 9, 4, 2)
STEPS = SGD(eta=0.2, steps=3, batch=4)


def weighed(models: list[Model], ahead: list[Model], k: int) -> list[list[float]]:
    rows = []
    for guide in ahead:
        row = []
        for model in models:
            squared = sum((p - q) ** 2 for p, q in zip(net.numbers(guide), net.numbers(model), strict=True))
            row.append(1.0 / max(squared, 1e-24))
        least = sorted(row, reverse=True)[: min(k, len(row))][-1]
        row = [value if value >= least else 0.0 for value in row]
        rows.append([value / sum(row) for value in row])
    return rows


def card(hand: Hand) -> Iterator[Round]:
    part: Any = hand.method.collaborate
    train: Any = hand.method.train
    theta: list[Model] = [hand.first] * hand.n
    moved: list[Model] = [net.combined((0.0, hand.first))] * hand.n
    for t in range(1, ROUNDS + 1):
        ids = hand.selected(t)
        ahead = [net.combined((1.0, theta[i]), (1.0, moved[i])) for i in ids]
        rows = weighed([theta[i] for i in ids], ahead, part.k)
        sent = dict(zip(ids, by_hand.blended(rows, [theta[i] for i in ids]), strict=True))
        received = [sent.get(i, theta[i]) for i in range(hand.n)]
        for i in ids:
            theta[i] = net.sgd(sent[i], hand.batches(t, i), train.eta, train.momentum, train.weight_decay)
            moved[i] = net.combined((1.0, theta[i]), (-1.0, sent[i]))
        yield Round(sent, {i: theta[i] for i in ids}, {"model": theta}, theta, None, received)


def composed(part: Ahead, count: int = 4, train: SGD = STEPS) -> Method:
    return Method("tried", Uniform(count=count), train, Everyone(), part)


CASES = {
    "some": composed(Ahead(2)),
    "all": composed(Ahead(99), 6),
    "one": composed(Ahead(1), 5),
    "epochs": composed(Ahead(3), 6, SGD(eta=0.15, steps=None, epochs=2, batch=4, momentum=0.5)),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(checked: Any, case: str) -> None:
    checked(CASES[case], card)


def test_feddwa(checked: Any) -> None:
    method = fk.methods.feddwa(k=3, eta=0.1, steps=2)
    assert type(method.train) is SGD
    checked(method, card, again=True)


@pytest.mark.parametrize("kept", [[1.0] * 5, [1.0, 0.0, 0.5, 1.0, 0.25], [0.0] * 5])
@pytest.mark.parametrize("k", [1, 3, 5, 9])
def test_weights(k: int, kept: list[float]) -> None:
    models, moved = by_hand.drawn(5), by_hand.drawn(5, seed=1)
    ahead = [net.combined((1.0, w), (1.0, step)) for w, step in zip(models, moved, strict=True)]
    counts = torch.tensor(kept, dtype=torch.float64)
    found = Ahead(k).weighed_ahead(by_hand.stack(models), by_hand.stack(moved), counts)
    by_hand.same(found, by_hand.counted(weighed(models, ahead, k), kept))


def test_a_client_that_walks_past_others_gets_those_ahead_of_it_not_those_behind() -> None:
    """With where a client is in place of where it goes, both neighbours would have the same weight."""
    line = {"w": torch.tensor([[-1.0], [0.0], [1.0]], dtype=torch.float64)}
    moved = {"w": torch.tensor([[0.0], [0.5], [0.0]], dtype=torch.float64)}
    found = Ahead(3).weighed_ahead(line, moved, torch.ones(3, dtype=torch.float64))[1]
    assert found[2] == found[1]  # half way between itself and the one ahead
    assert found[0] == pytest.approx(found[1] / 9)
