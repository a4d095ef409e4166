"""pFedMe against card 2.6: the double loop by scalars and loops, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import hand_network as net
import pytest
import transcribed as by_hand
from hand_network import ROUNDS
from small import tiny
from transcribed import Hand, Round

import fedkin as fk
from fedkin.collaborate import Mean
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Moreau

TRAIN, TEST = (2, 3, 7, 11, 25), (3, 0, 5, 9, 4)
SMALL = Moreau(eta=0.05, eta_p=0.1, lam=3.0, K=3, steps=3, batch=4)


def card(hand: Hand) -> Iterator[Round]:
    part: Any = hand.method.collaborate
    server = hand.first
    w, theta = [hand.first] * hand.n, [hand.first] * hand.n
    for t in range(1, ROUNDS + 1):
        ids = hand.selected(t)
        trainers = list(range(hand.n)) if hand.method.trains == "everyone" else ids
        sent = dict.fromkeys(trainers, server)
        for i in trainers:
            w[i], theta[i] = net.double_loop(server, hand.batches(t, i), hand.method.train)
        shares = [hand.sizes[i] if part.weights == "size" else 1.0 for i in ids]
        mean = net.average([w[i] for i in ids], shares)
        server = net.combined((1.0 - part.beta, server), (part.beta, mean))
        slots = {"model": w, "theta": theta}
        yield Round(sent, {i: w[i] for i in ids}, slots, theta, server, None, {"post-w": w})


def composed(train: Moreau = SMALL, mean: Mean | None = None, who: Any = "everyone") -> Method:
    return Method("tried", Uniform(count=3), train, Everyone(), mean or Mean(), trains=who, receives=who)


CASES = {
    "plain": composed(),
    "beta 2": composed(mean=Mean(beta=2.0)),
    "beta 0.5, uniform": composed(mean=Mean("uniform", 0.5)),
    "mu": composed(replace(SMALL, weight_decay=0.05)),
    "one inner step": composed(replace(SMALL, K=1)),
    "no pull": composed(replace(SMALL, lam=0.0)),
    "selected only": composed(who="selected"),
    "cyclic": composed(replace(SMALL, sampler="cyclic")),
    "epochs": composed(replace(SMALL, steps=None, epochs=2)),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(checked: Any, case: str) -> None:
    checked(CASES[case], card)


@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_pfedme(checked: Any, beta: float) -> None:
    method = fk.methods.pfedme(beta=beta, count=3)
    assert method.collaborate == Mean(beta=beta)
    checked(tiny(method), card, again=True)


def test_without_a_pull_the_server_stays(federation: Any, checked: Any) -> None:
    method = CASES["no pull"]
    wanted = checked(method, card)
    assert wanted[-1].server is not None
    assert net.numbers(wanted[-1].server) == pytest.approx(net.numbers(by_hand.Hand(federation, method).first))
