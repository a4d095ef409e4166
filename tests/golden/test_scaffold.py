"""SCAFFOLD against card 2.3 by scalars and loops, in float64."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import hand_network as net
import pytest
import torch
import transcribed as by_hand
from hand_network import CLASSES, CLOSE, FEATURES, Model
from small import tiny
from transcribed import Hand

import fedkin as fk
from fedkin import evaluate
from fedkin import round as rounds
from fedkin.collaborate import Control, Mean
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD, Scaffold

TRAIN, TEST = (2, 3, 7, 11, 25), (3, 0, 5, 9, 4)
NUMBERS = FEATURES * 4 + 4 + 4 * CLASSES + CLASSES
SMALL = Scaffold(eta=0.2, steps=3, batch=4)


# the card


def worth(steps: int, momentum: float) -> float:
    """K_eff of A-D7 by its meaning: every step's velocity holds the gradients of all steps before it."""
    total = 0.0
    for k in range(steps):
        for j in range(k + 1):
            total += momentum**j
    return total


def local(w: Model, c: Model, mine: Model, batches: list[Any], rate: float, part: Any) -> tuple[Model, Model]:
    """(y, c_i+): each step y <- y - eta (g_B(y) - c_i + c), then option II."""
    y = copy.deepcopy(w)
    velocity = [0.0] * NUMBERS
    every, own = net.numbers(c), net.numbers(mine)
    for samples in batches:
        slopes = net.numbers(net.gradient(y, samples))
        for k, (row, i) in enumerate(net.places(y)):
            step = slopes[k] + part.weight_decay * row[i] - own[k] + every[k]
            velocity[k] = part.momentum * velocity[k] + step
            row[i] -= rate * velocity[k]
    scale = 1.0 / (rate * worth(len(batches), part.momentum))
    return y, net.combined((1.0, mine), (-1.0, c), (scale, w), (-scale, y))


@dataclass
class Server:
    """What the server and the clients remember."""

    w: Model
    c: Model
    mine: list[Model]

    @staticmethod
    def first(hand: Hand) -> Server:
        return Server(hand.first, net.blank(), [net.blank()] * hand.n)

    def round(self, hand: Hand, t: int, ids: list[int]) -> tuple[dict[int, Model], dict[int, Model]]:
        """One round with these clients: their y and their change of c_i."""
        part, server = hand.method.train, hand.method.collaborate
        ended = {i: local(self.w, self.c, self.mine[i], hand.batches(t, i), part.rate(t), part) for i in ids}
        ys = {i: y for i, (y, _) in ended.items()}
        changes = {i: net.combined((1.0, ended[i][1]), (-1.0, self.mine[i])) for i in ids}
        shares = [hand.sizes[i] if server.weights == "size" else 1.0 for i in ids]
        mean = net.average(list(ys.values()), shares)
        self.w = net.combined((1.0 - server.beta, self.w), (server.beta, mean))
        moved = net.average(list(changes.values()), [1.0] * len(ids))
        self.c = net.combined((1.0, self.c), (len(ids) / hand.n, moved))
        self.mine = [ended[i][1] if i in ended else own for i, own in enumerate(self.mine)]
        return ys, changes


def composed(train: Scaffold = SMALL, server: Control | None = None, count: int = 3) -> Method:
    return Method("tried", Uniform(count=count), train, Everyone(), server or Control())


CASES = {
    "plain": composed(),
    "all": composed(count=5),
    "one": composed(count=1),
    "ragged": composed(replace(SMALL, steps=None, epochs=2)),
    "ragged, momentum": composed(replace(SMALL, steps=None, epochs=2, momentum=0.5)),
    "momentum": composed(replace(SMALL, momentum=0.9, eta=0.05)),
    "eta_g": composed(server=Control(beta=0.5)),
    "by size": composed(server=Control(weights="size", beta=1.5)),
    "decay": composed(replace(SMALL, weight_decay=0.05)),
    "rate decay": composed(replace(SMALL, rate_decay=0.7)),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(federation: Any, started: Any, case: str) -> None:
    played(started, CASES[case], federation)


def test_scaffold(federation: Any, started: Any) -> None:
    method = fk.methods.scaffold(count=3)
    played(started, tiny(method), federation)


def played(started: Any, method: Method, federation: fk.Federation) -> None:
    hand = Hand(federation, method)
    play, task, state = started(method)
    heard = by_hand.listened(play)
    server = Server.first(hand)
    everyone = torch.arange(hand.n)
    for t in range(1, net.ROUNDS + 1):
        heard.clear()
        before = copy.deepcopy(server)
        state, log = rounds.play(method, task, play, state)
        ids = log.selected.tolist()
        assert ids == hand.selected(t)
        ys, changes = server.round(hand, t, ids)
        sent, _, reply = heard[0]
        assert set(sent.shared) == {"model", "control"}
        assert by_hand.apart(sent.shared["model"], before.w) < CLOSE
        assert by_hand.apart(sent.shared["control"], before.c) < CLOSE
        assert set(reply.upload) == {"model", "control"}
        assert by_hand.farthest(reply.upload["model"], list(ys.values())) < CLOSE
        assert by_hand.farthest(reply.upload["control"], list(changes.values())) < CLOSE
        slots = play.slots.read(everyone)
        assert set(slots) == {"control"}
        assert by_hand.farthest(slots["control"], server.mine) < CLOSE
        assert by_hand.apart(state.collaborate["model"], server.w) < CLOSE
        assert by_hand.apart(state.collaborate["control"], server.c) < CLOSE
        twice = 2 * len(ids)
        assert (log.traffic.uploads, log.traffic.downloads) == (twice, twice)
        assert log.traffic.bytes_up == log.traffic.bytes_down == twice * NUMBERS * 8
        judged = evaluate.personal_models(method, task, play, state, everyone)
        part = method.train
        wanted = [
            local(server.w, server.c, server.mine[i], hand.batches(t + 1, i), part.rate(t + 1), part)[0]
            for i in range(hand.n)
        ]
        assert by_hand.farthest(judged, wanted) < CLOSE
        assert by_hand.farthest(play.slots.read(everyone)["control"], server.mine) < CLOSE  # a look changes nothing


def test_the_cost_of_a_run_is_twice_that_of_fedavg(federation: Any) -> None:
    fedavg = Method("tried", Uniform(count=3), SGD(steps=3, batch=4), Everyone(), Mean())
    costs = [
        fk.run(fk.Experiment(method, federation, net.network(), 4)).summary["cost"] for method in (fedavg, composed())
    ]
    sent = {"uploads": 12, "downloads": 12, "bytes_up": 48 * NUMBERS, "bytes_down": 48 * NUMBERS}
    assert costs[0] == sent | {"client_rounds": 12}
    assert costs[1] == {name: 2 * value for name, value in sent.items()} | {"client_rounds": 12}
