"""FedMix against card 2.4: its loss, its gradient by differences, the pool, and three rounds by scalars and loops."""

from __future__ import annotations

import copy
from dataclasses import replace
from math import log
from typing import Any

import hand_network as net
import numpy as np
import pytest
import torch
import transcribed as by_hand
from hand_network import CLASSES, CLOSE, FEATURES, HIDDEN, SEED, A, B, Model, Sample
from torch import nn
from transcribed import Hand

import fedkin as fk
from fedkin import round as rounds
from fedkin.collaborate import Mean
from fedkin.core import rng
from fedkin.engines.network import Network
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import FedMix
from fedkin.train.fedmix import Mixed

TRAIN, TEST = (2, 3, 7, 11, 25), (3, 0, 5, 9, 4)
NUMBERS = FEATURES * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES
ROUNDS = 3
SMALL = FedMix(eta=0.2, steps=3, batch=4, lam=0.3)

Average = tuple[list[float], list[float]]  # (xbar, ybar)


# the loss of the card


def shrunk(samples: list[Sample], lam: float, towards: list[float] | None = None, eps: float = 0.0) -> list[Sample]:
    """(1 - lam) x + eps xbar."""
    xbar = towards or [0.0] * FEATURES
    return [([(1.0 - lam) * x[i] + eps * xbar[i] for i in range(FEATURES)], y) for x, y in samples]


def input_slope(w: Model, x: list[float], y: int) -> list[float]:
    """grad_x CE(f(x), y)."""
    z, h = net.logits(w, x)
    dz = net.slope(z, y, 1)
    found = [0.0] * FEATURES
    for j in range(HIDDEN):
        dh = 0.0
        for c in range(CLASSES):
            dh += dz[c] * w[B][c][j]
        for i in range(FEATURES):
            found[i] += dh * (1.0 - h[j] * h[j]) * w[A][j][i]
    return found


def loss(w: Model, samples: list[Sample], average: Average, lam: float) -> float:
    xbar, ybar = average
    total = 0.0
    for x, y in shrunk(samples, lam):
        p = net.probabilities(net.logits(w, x)[0])
        soft = 0.0
        for c in range(CLASSES):
            soft -= ybar[c] * log(p[c])
        total += (1.0 - lam) * -log(p[y]) + lam * soft + lam * (1.0 - lam) * net.dot(input_slope(w, x, y), xbar)
    return total / len(samples)


def gradient(w: Model, samples: list[Sample], average: Average, lam: float) -> Model:
    """Of that loss; the third term by differences of gradients along xbar, as the card has it (to fourth order)."""
    xbar, ybar = average
    z = shrunk(samples, lam)
    terms = [(1.0 - lam, net.gradient(w, z))]
    for c in range(CLASSES):
        terms.append((lam * ybar[c], net.gradient(w, [(x, c) for x, _ in z])))
    e = 1e-3
    for times, weight in ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0)):
        moved = net.gradient(w, shrunk(samples, lam, xbar, times * e))
        terms.append((lam * (1.0 - lam) * weight / (12.0 * e), moved))
    return net.combined(*terms)


def case(seed: int, samples: int) -> tuple[Model, list[Sample], Average]:
    draw = np.random.default_rng(seed)
    w = by_hand.drawn(1, seed, spread=1.0)[0]
    some = [(draw.normal(size=FEATURES).tolist(), int(draw.integers(CLASSES))) for _ in range(samples)]
    return w, some, (draw.normal(size=FEATURES).tolist(), draw.dirichlet(np.ones(CLASSES)).tolist())


def batched(samples: list[Sample], average: Average, padded: int = 0) -> dict[str, torch.Tensor]:
    x = torch.tensor([x for x, _ in samples] + [[9.0] * FEATURES] * padded, dtype=torch.float64)
    y = torch.tensor([y for _, y in samples] + [1] * padded)
    xbar, ybar = (torch.tensor(value, dtype=torch.float64) for value in average)
    weight = torch.tensor([1.0] * len(samples) + [0.0] * padded, dtype=torch.float64)
    return {"x": x, "y": y, "picked x": xbar, "picked y": ybar} | ({"weight": weight} if padded else {})


def torch_model(w: Model) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(value, dtype=torch.float64) for name, value in w.items()}


def by_torch() -> Network:
    return Network(net.network(), torch.zeros(FEATURES, dtype=torch.float64), 4, torch.float64)


@pytest.mark.parametrize("lam", [0.0, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("padded", [0, 3])
def test_the_loss(lam: float, padded: int) -> None:
    """Also where a batch is filled up with samples that do not count."""
    for seed in range(3):
        w, samples, average = case(seed, 4)
        objective = Mixed(replace(SMALL, lam=lam), by_torch())
        found = objective.loss(torch_model(w), batched(samples, average, padded))
        assert float(found) == pytest.approx(loss(w, samples, average, lam), abs=1e-12)


@pytest.mark.parametrize("lam", [0.0, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("padded", [0, 3])
def test_its_gradient_by_finite_differences(lam: float, padded: int) -> None:
    """Of every parameter, through the slope by the inputs too; and the transcription below is right as well."""
    w, samples, average = case(5, 3)
    found = Mixed(replace(SMALL, lam=lam), by_torch()).grad(torch_model(w), batched(samples, average, padded))
    e, wanted = 1e-4, copy.deepcopy(w)
    moved = copy.deepcopy(w)
    for (row, i), (out, j) in zip(net.places(moved), net.places(wanted), strict=True):
        value, total = row[i], 0.0
        for times, weight in ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0)):
            row[i] = value + times * e
            total += weight * loss(moved, samples, average, lam)
        row[i] = value
        out[j] = total / (12.0 * e)
    assert by_hand.apart(found, wanted) < 1e-9
    assert by_hand.apart(found, gradient(w, samples, average, lam)) < 1e-9


def test_the_second_order_term_matters() -> None:
    """The check above would see it missing."""
    w, samples, average = case(5, 3)
    full = net.numbers(gradient(w, samples, average, 0.3))
    without = net.numbers(gradient(w, samples, ([0.0] * FEATURES, average[1]), 0.3))
    assert max(abs(p - q) for p, q in zip(full, without, strict=True)) > 1e-2


def test_it_takes_dropout_and_pictures() -> None:
    """A mask is the same in both passes of a step, and the slope is summed over all axes of an input."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.Dropout(0.5), nn.Linear(8, CLASSES))
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(4, 1, 4, 4, generator=draw, dtype=torch.float64)
    net = Network(module, x[0], 4, torch.float64)
    keep = (torch.rand(4, 8, generator=draw) > 0.5).double() * 2
    batch = {"x": x, "y": torch.tensor([0, 1, 2, 1]), "mask of 3": keep}
    xbar = torch.randn(1, 4, 4, generator=draw, dtype=torch.float64)
    ybar = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    part = replace(SMALL, lam=0.3)

    def plain(shift: float, y: torch.Tensor) -> float:
        return float(net.loss(net.model, batch | {"x": 0.7 * x + shift * xbar, "y": y}))

    slope = (plain(1e-4, batch["y"]) - plain(-1e-4, batch["y"])) / 2e-4
    soft = sum(float(ybar[c]) * plain(0.0, torch.full((4,), c)) for c in range(CLASSES))
    wanted = 0.7 * plain(0.0, batch["y"]) + 0.3 * soft + 0.21 * slope
    found = part.loss(net.model, batch | {"picked x": xbar, "picked y": ybar}, net)
    assert float(found) == pytest.approx(wanted, abs=1e-8)


# the pool


def pool(hand: Hand, group: int | None) -> list[Average]:
    """The mean input and the mean one-hot label of each group of every client's samples."""
    found: list[Average] = []
    for client in range(hand.n):
        own = hand.federation.train[client].tolist()
        size = group or len(own)
        for first in range(0, len(own), size):
            some = own[first : first + size]
            xbar, ybar = [0.0] * FEATURES, [0.0] * CLASSES
            for row in some:
                for i in range(FEATURES):
                    xbar[i] += hand.x[row][i] / len(some)
                ybar[hand.y[row]] += 1.0 / len(some)
            found.append((xbar, ybar))
    return found


@pytest.mark.parametrize(("group", "rows"), [(None, 5), (1, 48), (4, 1 + 1 + 2 + 3 + 7), (100, 5)])
def test_the_pool(federation: Any, started: Any, group: int | None, rows: int) -> None:
    method = composed(replace(SMALL, group=group))
    wanted = pool(Hand(federation, method), group)
    assert len(wanted) == rows
    play, _, _ = started(method)
    assert set(play.batching.pool.message) == {"averages"}
    found = play.batching.pool.message["averages"]
    assert set(found) == {"x", "y"}
    assert float((found["x"] - torch.tensor([x for x, _ in wanted], dtype=torch.float64)).abs().max()) < 1e-12
    assert float((found["y"] - torch.tensor([y for _, y in wanted], dtype=torch.float64)).abs().max()) < 1e-12
    assert play.prepare(method.train) == (rows * (FEATURES + CLASSES), rows * (FEATURES + CLASSES) * 8)


# three rounds


def composed(train: FedMix = SMALL, count: int = 3) -> Method:
    return Method("tried", Uniform(count=count), train, Everyone(), Mean())


CASES = {
    "plain": composed(),
    "lam 0.05": composed(replace(SMALL, lam=0.05)),
    "groups": composed(replace(SMALL, group=4)),
    "momentum, epochs": composed(replace(SMALL, steps=None, epochs=1, momentum=0.5, eta=0.05)),
    "decay": composed(replace(SMALL, weight_decay=0.05, rate_decay=0.8)),
    "method": replace(fk.methods.fedmix(lam=0.2, count=3), train=replace(SMALL, lam=0.2)),
}


def local(hand: Hand, w: Model, t: int, client: int, averages: list[Average]) -> Model:
    part: Any = hand.method.train
    w = copy.deepcopy(w)
    velocity = [0.0] * NUMBERS
    stream = rng.keys(SEED, "picks", t, np.array([client]))
    for number, samples in enumerate(hand.batches(t, client)):
        at = int(float(rng.uniform(stream, number, 1)[0, 0]) * len(averages))  # the random choice
        slopes = net.numbers(gradient(w, samples, averages[at], part.lam))
        for k, (row, i) in enumerate(net.places(w)):
            velocity[k] = part.momentum * velocity[k] + slopes[k] + part.weight_decay * row[i]
            row[i] -= part.rate(t) * velocity[k]
    return w


@pytest.mark.parametrize("case", CASES)
def test_rounds(federation: Any, started: Any, case: str) -> None:
    method = CASES[case]
    hand = Hand(federation, method)
    averages = pool(hand, method.train.values()["group"])
    play, task, state = started(method, rounds=ROUNDS)
    heard = by_hand.listened(play)
    server = hand.first
    for t in range(1, ROUNDS + 1):
        heard.clear()
        state, log = rounds.play(method, task, play, state)
        ids = log.selected.tolist()
        assert ids == hand.selected(t)
        wanted = [local(hand, server, t, i, averages) for i in ids]
        _, _, reply = heard[0]
        assert set(reply.upload) == {"model"}
        assert by_hand.farthest(reply.upload["model"], wanted) < CLOSE, f"round {t}"
        server = net.average(wanted, [hand.sizes[i] for i in ids])
        assert by_hand.apart(state.collaborate["model"], server) < CLOSE, f"round {t}"
        assert (log.traffic.uploads, log.traffic.downloads) == (3, 3)
