"""Per-FedAvg, first-order and Hessian-free, against card 2.5: by scalars and loops, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import sqrt
from typing import Any

import hand_network as net
import numpy as np
import pytest
import torch
from hand_network import CLASSES, FEATURES, ROUNDS, Model
from small import tiny
from transcribed import Hand, Round

import fedkin as fk
from fedkin.collaborate import Mean
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import MAML

TRAIN, TEST = (2, 3, 7, 11, 25), (3, 0, 5, 9, 4)
SMALL = MAML(alpha=0.3, eta=0.2, order="FO", steps=3, batch=4)
BATCHES = {"FO": 2, "HF": 3}


def step(w: Model, batches: list[Any], part: Any) -> Model:
    inner = net.combined((1.0, w), (-part.alpha, net.gradient(w, batches[0])))
    v = net.gradient(inner, batches[1])
    if part.order == "FO":
        return net.combined((1.0, w), (-part.eta, v))
    length = sqrt(net.dot(net.numbers(v), net.numbers(v)))
    if length < 1e-12:
        return net.combined((1.0, w), (-part.eta, v))
    e = 1e-2 / length
    above = net.gradient(net.combined((1.0, w), (e, v)), batches[2])
    below = net.gradient(net.combined((1.0, w), (-e, v)), batches[2])
    h = net.combined((1.0 / (2.0 * e), above), (-1.0 / (2.0 * e), below))
    return net.combined((1.0, w), (-part.eta, v), (part.eta * part.alpha, h))


def card(hand: Hand) -> Iterator[Round]:
    part: Any = hand.method.train
    server = hand.first
    for t in range(1, ROUNDS + 1):
        ids = hand.selected(t)
        sent = dict.fromkeys(ids, server)
        uploads = {}
        for i in ids:
            uploads[i] = server
            for batches in hand.steps(t, i, BATCHES[part.order]):
                uploads[i] = step(uploads[i], batches, part)
        server = net.average([uploads[i] for i in ids], [hand.sizes[i] for i in ids])
        judged = []
        for i in range(hand.n):
            g = net.gradient(server, hand.batches(t, i)[0])
            judged.append(net.combined((1.0, server), (-part.alpha, g)))
        yield Round(sent, uploads, {}, judged, server)


def composed(train: MAML) -> Method:
    return Method("tried", Uniform(count=3), train, Everyone(), Mean())


CASES = {
    "first order": composed(SMALL),
    "Hessian-free": composed(replace(SMALL, order="HF")),
    "first order, no inner step": composed(replace(SMALL, alpha=0.0)),
    "Hessian-free, no inner step": composed(replace(SMALL, alpha=0.0, order="HF")),
    "Hessian-free, long inner step": composed(replace(SMALL, alpha=1.5, order="HF")),
    "first order, epochs": composed(replace(SMALL, steps=None, epochs=2)),
    "Hessian-free, epochs": composed(replace(SMALL, steps=None, epochs=3, order="HF")),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(checked: Any, case: str) -> None:
    checked(CASES[case], card)


@pytest.mark.parametrize("order", BATCHES)
def test_perfedavg(checked: Any, order: Any) -> None:
    method = fk.methods.perfedavg(order=order, count=3)
    assert method.train.order == order
    checked(tiny(method), card, again=True)


def test_the_second_order_term_is_there(federation: Any) -> None:
    """The first step of each kind from the same model with the same first two batches."""
    hand = Hand(federation, CASES["Hessian-free"])
    batches = hand.steps(1, 4, 3)[0]
    first = net.numbers(step(hand.first, batches, SMALL))
    second = net.numbers(step(hand.first, batches, replace(SMALL, order="HF")))
    assert max(abs(p - q) for p, q in zip(first, second, strict=True)) > 1e-4


def test_the_difference_is_the_hessian_times_v(federate: Any) -> None:
    """The transcription's own h, against torch's exact Hessian-vector product."""
    hand = Hand(federate(TRAIN, TEST, (FEATURES,), CLASSES), CASES["Hessian-free"])
    batches = hand.steps(1, 4, 3)[0]
    part = replace(SMALL, order="HF")
    v = net.gradient(net.combined((1.0, hand.first), (-part.alpha, net.gradient(hand.first, batches[0]))), batches[1])
    x = torch.tensor([sample[0] for sample in batches[2]], dtype=torch.float64)
    y = torch.tensor([sample[1] for sample in batches[2]])

    at = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in hand.first.items()}
    slopes = torch.autograd.grad(hand.engine.network.loss(at, {"x": x, "y": y}), list(at.values()), create_graph=True)
    along = sum((g * torch.tensor(v[name])).sum() for name, g in zip(at, slopes, strict=True))
    exact = dict(zip(at, torch.autograd.grad(along, list(at.values())), strict=True))  # type: ignore[arg-type]
    after = step(hand.first, batches, part)
    wanted = net.combined((1.0, hand.first), (-part.eta, v))
    for name, value in exact.items():
        difference = np.array(after[name]) - np.array(wanted[name])
        h = torch.from_numpy(difference / (part.eta * part.alpha))
        assert torch.allclose(h, value, atol=1e-4)
