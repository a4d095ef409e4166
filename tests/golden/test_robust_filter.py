"""The filter `Robust` against its box in docs/papers/robust.md, by scalars and loops over four rounds, in float64."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from typing import Any

import hand_network as net
import pytest
import transcribed as by_hand
from filter_transcribed import Filter
from hand_network import CLOSE
from transcribed import Hand

import fedkin as fk
from fedkin import round as rounds
from fedkin.data.scenarios import attacked
from fedkin.keep import Robust
from fedkin.select import Uniform
from fedkin.train import SGD

TRAIN, TEST = (2, 3, 7, 11, 25, 4, 9, 6, 5, 8), (3, 0, 5, 9, 4, 1, 2, 2, 1, 3)
ROUNDS = 4
CASES = {  # the factor by which attackers change their updates, and the clients of a round
    "clean": (1.0, 10),
    "clean, six of ten": (1.0, 6),
    "clean, three of ten": (1.0, 3),
    "reversed": (-1.0, 10),
    "reversed, six of ten": (-1.0, 6),
    "large": (30.0, 10),
    "large, six of ten": (30.0, 6),
    "large and reversed": (-30.0, 10),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(federation: Any, started: Any, case: str) -> None:
    factor, count = CASES[case]
    train, filtered = SGD(eta=0.3, steps=None, epochs=1, batch=4), Filter()
    method = replace(fk.methods.fedavg(), select=Uniform(count=count), train=train, keep=Robust())
    federation = attacked(replace(federation, irrelevant=None), "scale", 0.3, factor)
    play, task, state = started(method, federation, rounds=ROUNDS)
    bad = federation.irrelevant.tolist()
    hand = Hand(federation, method)
    server, first, out = hand.first, net.numbers(hand.first), 0
    for t in range(1, ROUNDS + 1):
        ids = hand.selected(t)
        uploads = {}
        for i in ids:
            trained = net.sgd(server, hand.batches(t, i), 0.3)
            uploads[i] = net.combined((1.0 - factor, server), (factor, trained)) if bad[i] else trained
        reach = {i: 0.3 * len(hand.batches(t, i)) for i in ids}
        models = {i: net.numbers(model) for i, model in uploads.items()}
        kept = filtered.judge(first, net.numbers(server), models, reach, federation.classes)
        out += len(ids) - len(kept)
        if kept:
            server = net.average([uploads[i] for i in kept], [hand.sizes[i] for i in kept])
        state, log = rounds.play(method, task, play, state)
        assert log.selected[log.weights > 0].tolist() == kept
        for i, mark in enumerate(state.keep["divergence"].tolist()):
            assert isnan(mark) if i not in filtered.scores else mark == pytest.approx(filtered.scores[i], rel=1e-8)
        model = method.collaborate.model(state.collaborate)
        assert model is not None
        assert by_hand.apart(model, server) < CLOSE
    assert factor == 1.0 or out > 0, "the case shows nothing if nobody is ever left out"
