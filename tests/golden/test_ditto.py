"""Ditto against card 2.7: two models a client by scalars and loops, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import hand_network as net
import pytest
from hand_network import ROUNDS
from small import tiny
from transcribed import Hand, Round

import fedkin as fk
from fedkin.collaborate import Mean
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import TwoStreams

TRAIN, TEST = (2, 3, 7, 11, 25), (3, 0, 5, 9, 4)
SMALL = TwoStreams(eta=0.2, eta_v=0.3, lam=1.0, batches="own", steps=3, batch=4)


def card(hand: Hand) -> Iterator[Round]:
    part: Any = hand.method.train
    server, v = hand.first, [hand.first] * hand.n
    for t in range(1, ROUNDS + 1):
        ids = hand.selected(t)
        rate = part.eta if part.eta_v is None else part.eta_v
        trainers = list(range(hand.n)) if hand.method.trains == "everyone" else ids
        sent = dict.fromkeys(trainers, server)
        trained = {}
        for i in trainers:
            each = hand.steps(t, i, 2 if part.batches == "own" else 1)
            trained[i] = net.sgd(server, [batches[0] for batches in each], part.eta)
            for batches in each:
                g = net.gradient(v[i], batches[-1])
                pull = net.combined((1.0, v[i]), (-1.0, server))  # the round-start w
                v[i] = net.combined((1.0, v[i]), (-rate, g), (-rate * part.lam, pull))
        uploads = {i: trained[i] for i in ids}
        server = net.average(list(uploads.values()), [hand.sizes[i] for i in ids])
        yield Round(sent, uploads, {"personal": v}, v, server)


def composed(train: TwoStreams, who: Any = "selected", count: int = 3) -> Method:
    return Method("tried", Uniform(count=count), train, Everyone(), Mean(), trains=who, receives=who)


CASES = {
    f"lam {lam:g}, {batches}": composed(replace(SMALL, lam=lam, batches=batches))  # type: ignore[arg-type]
    for lam in (0.0, 1.0, 2.5)
    for batches in ("own", "same")
} | {
    "one rate": composed(replace(SMALL, eta_v=None)),
    "one rate, same": composed(replace(SMALL, eta_v=None, batches="same")),
    "all": composed(SMALL, "everyone"),
    "epochs, own": composed(replace(SMALL, steps=None, epochs=3)),
    "epochs, same": composed(replace(SMALL, steps=None, epochs=2, batches="same")),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(checked: Any, case: str) -> None:
    checked(CASES[case], card)


@pytest.mark.parametrize("lam", [1.0, 0.1])
def test_ditto(checked: Any, lam: float) -> None:
    method = fk.methods.ditto(lam=lam, count=3)
    assert method.train.lam == lam
    checked(tiny(method), card, again=True)
