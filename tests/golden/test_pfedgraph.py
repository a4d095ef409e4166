"""pFedGraph: the weights by bisection for the projection, the clients' cosine by scalars and loops, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import hand_network as net
import pytest
import torch
import transcribed as by_hand
from hand_network import ROUNDS, Model
from transcribed import Hand, Round

import fedkin as fk
from fedkin.collaborate import CollaborationGraph
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Aligned

TRAIN, TEST = (2, 3, 7, 11, 25, 4), (3, 0, 5, 9, 4, 2)
STEPS = Aligned(eta=0.2, steps=3, batch=4, mu=0.5)


def projected(v: list[float]) -> list[float]:
    """The nearest point of the simplex: max(v - t, 0), with t found by halving an interval."""
    low, high = min(v) - 1.0, max(v)
    for _ in range(200):
        t = (low + high) / 2
        if sum(max(x - t, 0.0) for x in v) > 1.0:
            low = t
        else:
            high = t
    return [max(x - high, 0.0) for x in v]


def graph(models: list[Model], sizes: list[float], origin: Model, lam: float, same: float) -> list[list[float]]:
    vectors = [net.numbers(net.combined((1.0, w), (-1.0, origin))) for w in models]
    rows = []
    for i in range(len(models)):
        row = []
        for j in range(len(models)):
            cosine = 1.0 if i == j else net.cosine(vectors[i], vectors[j])
            d = -1.0 if cosine > same else -cosine
            row.append(sizes[j] / sum(sizes) - d / (2.0 * lam))
        rows.append(projected(row))
    return rows


def turned(start: Model, batches: Any, train: Any) -> Model:
    """SGD on f - mu cos(theta, u), the gradient of the cosine number by number."""
    w, u = start, net.numbers(start)
    velocity = [0.0] * len(u)
    scale = train.mu if train.sign == "away" else -train.mu
    for samples in batches:
        slopes, now = net.numbers(net.gradient(w, samples)), net.numbers(w)
        a, b = sqrt(net.dot(now, now)), sqrt(net.dot(u, u))
        cosine = net.dot(now, u) / (a * b)
        w = net.combined((1.0, w))
        for k, (row, i) in enumerate(net.places(w)):
            turn = u[k] / (a * b) - cosine * now[k] / (a * a)
            velocity[k] = train.momentum * velocity[k] + slopes[k] + train.weight_decay * now[k] + scale * turn
            row[i] = now[k] - train.eta * velocity[k]
    return w


def card(hand: Hand) -> Iterator[Round]:
    part: Any = hand.method.collaborate
    theta = [hand.first] * hand.n
    for t in range(1, ROUNDS + 1):
        ids = hand.selected(t)
        rows = graph([theta[i] for i in ids], [hand.sizes[i] for i in ids], hand.first, part.lam, part.same)
        sent = dict(zip(ids, by_hand.blended(rows, [theta[i] for i in ids]), strict=True))
        received = [sent.get(i, theta[i]) for i in range(hand.n)]
        for i in ids:
            theta[i] = turned(sent[i], hand.batches(t, i), hand.method.train)
        yield Round(sent, {i: theta[i] for i in ids}, {"model": theta}, theta, None, received)


def composed(part: CollaborationGraph, train: Aligned = STEPS, count: int = 4) -> Method:
    return Method("tried", Uniform(count=count), train, Everyone(), part)


CASES = {
    "plain": composed(CollaborationGraph(0.8)),
    "nearly alone": composed(CollaborationGraph(0.2)),
    "nearly the mean": composed(CollaborationGraph(30.0)),
    "some count as the same": composed(CollaborationGraph(0.8, 0.3)),
    "away": composed(CollaborationGraph(0.8), Aligned(eta=0.2, steps=3, batch=4, mu=0.5, sign="away")),
    "momentum": composed(CollaborationGraph(0.8), Aligned(0.2, 3, None, 4, 0.5, 0.1, mu=0.2)),
    "no turn": composed(CollaborationGraph(0.8), Aligned(eta=0.2, steps=3, batch=4, mu=0.0)),
    "epochs": composed(CollaborationGraph(0.8), Aligned(0.15, None, 2, 4, mu=0.3), 6),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(checked: Any, case: str) -> None:
    checked(CASES[case], card)


@pytest.mark.parametrize("official", [False, True])
def test_pfedgraph(checked: Any, official: bool) -> None:
    method = fk.methods.pfedgraph(0.6, 0.2, eta=0.1, steps=2, official=official)
    assert method.train.sign == ("away" if official else "towards")  # type: ignore[attr-defined]
    checked(method, card, again=True)


def test_the_term_turns_clients_towards_what_they_are_sent(checked: Any) -> None:
    """The published code's sign is the other one: a larger mu must raise the cosine, not lower it."""
    cosines = {}
    for sign in ("towards", "away"):
        train = Aligned(eta=0.2, steps=3, batch=4, mu=1.0, sign=sign)  # type: ignore[arg-type]
        last = checked(composed(CollaborationGraph(0.8), train), card)[0]
        cosines[sign] = [net.cosine(net.numbers(last.sent[i]), net.numbers(last.uploads[i])) for i in last.sent]
    assert all(near > far for near, far in zip(cosines["towards"], cosines["away"], strict=True))


@pytest.mark.parametrize("kept", [[1.0] * 6, [1.0, 0.0, 0.5, 1.0, 0.25, 1.0], [0.0] * 6])
@pytest.mark.parametrize(("lam", "same"), [(0.1, 1.0), (0.8, 1.0), (0.8, 0.2), (20.0, 1.0)])
def test_weights(lam: float, same: float, kept: list[float]) -> None:
    models, theta = by_hand.drawn(6, spread=0.7), by_hand.drawn(1, spread=0.0)[0]
    origin = {name: value[0] for name, value in by_hand.stack([theta]).items()}
    sizes = [2.0, 9.0, 4.0, 4.0, 30.0, 1.0]
    part, k = CollaborationGraph(lam, same), torch.tensor(kept, dtype=torch.float64)
    found = part.weights(by_hand.stack(models), k, torch.tensor(sizes), origin)["model"]
    by_hand.same(found, by_hand.counted(graph(models, sizes, theta, lam, same), kept))


def test_no_other_point_of_the_simplex_is_better() -> None:
    """The weights are the minimum of sum_j w_j d_j + lam |w - p|^2, whatever way they are found."""
    models, theta = by_hand.drawn(5, spread=0.7), by_hand.drawn(1, spread=0.0)[0]
    origin = {name: value[0] for name, value in by_hand.stack([theta]).items()}
    sizes, lam = torch.tensor([2.0, 9.0, 4.0, 4.0, 30.0], dtype=torch.float64), 0.7
    part = CollaborationGraph(lam)
    found = part.weights(by_hand.stack(models), torch.ones(5, dtype=torch.float64), sizes, origin)["model"]
    vectors = [net.numbers(net.combined((1.0, w), (-1.0, theta))) for w in models]
    d = -torch.tensor([[net.cosine(a, b) for b in vectors] for a in vectors], dtype=torch.float64)

    def cost(w: torch.Tensor) -> torch.Tensor:
        return (w * d).sum(1) + lam * (w - sizes / sizes.sum()).square().sum(1)

    others = torch.distributions.Dirichlet(torch.ones(5, dtype=torch.float64))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for _ in range(200):
            assert (cost(others.sample((5,))) >= cost(found) - 1e-12).all()
