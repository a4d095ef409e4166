"""Krum, Multi-Krum, the trimmed mean and the median against cards 2.14 to 2.16, by scalars and loops, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import hand_network as net
import pytest
import robust_transcribed as box
import torch
import transcribed as by_hand
from hand_network import CLOSE, ROUNDS, Model
from transcribed import Hand, Round

import fedkin as fk
from fedkin import round as rounds
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD

TRAIN, TEST = (2, 3, 7, 11, 25, 4, 9, 6), (3, 1, 5, 2, 4, 0, 3, 2)
make = fk.methods
Whole = Callable[[list[Model]], Model]


def card(whole: Whole) -> Callable[[Hand], Iterator[Round]]:
    def played(hand: Hand) -> Iterator[Round]:
        server, part = hand.first, hand.method.train
        for t in range(1, ROUNDS + 1):
            ids = hand.selected(t)
            sent = dict.fromkeys(ids, server)
            uploads = {i: net.sgd(server, hand.batches(t, i), part.eta) for i in ids}
            server = whole(list(uploads.values()))
            after = [net.sgd(server, hand.batches(t + 1, i), part.eta) for i in range(hand.n)]
            yield Round(sent, uploads, {}, after, server)

    return played


def small(method: Method, count: int) -> Method:
    return replace(method, select=Uniform(count=count), train=SGD(eta=0.3, steps=3, batch=4))


CASES: dict[str, tuple[Method, Whole]] = {
    "krum": (small(make.krum(f=2), 8), lambda models: box.krum(models, 2)),
    "krum, five": (small(make.krum(f=1), 5), lambda models: box.krum(models, 1)),
    "multikrum": (small(make.multikrum(f=2), 8), lambda models: box.multi_krum(models, 2)),
    "multikrum, five": (small(make.multikrum(f=1), 5), lambda models: box.multi_krum(models, 1)),
    "trimmed mean": (small(make.trimmed_mean(trim=0.2), 8), lambda models: box.trimmed(models, 0.2)),
    "trimmed mean, seven": (small(make.trimmed_mean(trim=0.3), 7), lambda models: box.trimmed(models, 0.3)),
    "trimmed mean, nothing": (small(make.trimmed_mean(trim=0.0), 5), lambda models: box.trimmed(models, 0.0)),
    "median, even": (small(make.median(), 8), box.middle),
    "median, odd": (small(make.median(), 7), box.middle),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(checked: Any, case: str) -> None:
    method, whole = CASES[case]
    checked(method, card(whole))


@pytest.mark.parametrize("case", ["krum", "multikrum", "trimmed mean", "median, even"])
def test_who_is_not_finite_is_removed_first(federation: Any, started: Any, case: str) -> None:
    method, whole = CASES[case]
    federation.x[federation.train[4]] = torch.nan
    hand = Hand(federation, method)
    play, task, state = started(method, rounds=2)
    server = hand.first
    for t in (1, 2):
        state, log = rounds.play(method, task, play, state)
        good = [i for i in range(len(TRAIN)) if i != 4]
        server = whole([net.sgd(server, hand.batches(t, i), 0.3) for i in good])
        assert log.dropped == [4]
        found = method.collaborate.model(state.collaborate)
        assert found is not None
        assert by_hand.apart(found, server) < CLOSE
