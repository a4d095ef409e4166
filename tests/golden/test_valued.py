"""S-FedAvg and Active FL against cards 2.11 and 2.12, by scalars and loops."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any

import hand_network as net
import pytest
import torch
import transcribed as by_hand
from hand_network import CLOSE, ROUNDS, SEED, Model, Sample
from transcribed import Hand

import fedkin as fk
from fedkin import round as rounds
from fedkin.collaborate import Mean
from fedkin.core.rng import generator
from fedkin.log import Traffic
from fedkin.parts import Method
from fedkin.select import Active, Shapley
from fedkin.select.draw import drawn
from fedkin.survey import survey, survey_message

TRAIN, TEST = (2, 3, 7, 11, 25, 6), (3, 0, 5, 9, 4, 2)


def small(method: Method, **train: Any) -> Method:
    return replace(method, train=replace(method.train, **{"steps": 3, "batch": 4, "eta": 0.5} | train))


def samples(hand: Hand, client: int) -> list[Sample]:
    return [(hand.x[row], hand.y[row]) for row in hand.federation.train[client].tolist()]


# S-FedAvg


def gains(before: Model, uploads: list[Model], orders: list[list[int]], validation: list[Sample]) -> list[float]:
    """Monte-Carlo Shapley values over these orders; a coalition is worth acc_V(W + mean of its updates)."""
    total = [0.0] * len(uploads)
    for order in orders:
        last = net.scored(before, validation)[0] / len(validation)
        for k in range(len(order)):
            change = net.average(
                [net.combined((1.0, uploads[j]), (-1.0, before)) for j in order[: k + 1]], [1.0] * (k + 1)
            )
            model = net.combined((1.0, before), (1.0, change))
            value = net.scored(model, validation)[0] / len(validation)
            total[order[k]] += value - last
            last = value
    return [value / len(orders) for value in total]


def test_sfedavg(federation: Any, started: Any) -> None:
    method = fk.methods.sfedavg(fraction=0.5)
    assert method.select == Shapley(0.75, 0.25, 0.01, 10, 0.5)
    assert method.collaborate == Mean("uniform")
    method = small(method)
    hand = Hand(federation, method)
    play, task, state = started(method, rounds=ROUNDS)
    validation = [(hand.x[row], hand.y[row]) for row in range(8)]  # what the fixture gives the server
    server, phi, moved = hand.first, [1.0 / hand.n] * hand.n, 0
    for t in range(1, ROUNDS + 1):
        p = torch.softmax(torch.tensor(phi, dtype=torch.float64) / 0.01, 0)
        wanted = drawn(p, 3, generator(SEED, "select", t)).tolist()
        state, log = rounds.play(method, task, play, state)
        ids = log.selected.tolist()
        assert ids == wanted
        uploads = [net.sgd(server, hand.batches(t, i), method.train.eta) for i in ids]
        gen = generator(SEED, "observe", t)
        orders = [torch.randperm(3, generator=gen).tolist() for _ in range(10)]  # the random choice
        for i, gain in zip(ids, gains(server, uploads, orders, validation), strict=True):
            phi[i] = 0.75 * phi[i] + 0.25 * gain
            moved += gain != 0.0
        assert state.select["phi"].tolist() == pytest.approx(phi, abs=1e-12), f"round {t}"
        server = net.average(uploads, [1.0] * 3)
        assert by_hand.apart(state.collaborate["model"], server) < CLOSE, f"round {t}"
    assert moved > 3


# Active FL


def value(hand: Hand, w: Model, client: int) -> float:
    """v_i = (1 / sqrt(n_i)) sum of the losses over D_i."""
    own = samples(hand, client)
    return net.scored(w, own)[1] / sqrt(len(own))


def test_active(federation: Any, started: Any) -> None:
    method = small(replace(fk.methods.active(fraction=0.5), select=Active(alpha1=0.3, alpha2=2.0, fraction=0.5)))
    assert fk.methods.active(fraction=0.5).select == Active(0.75, 0.01, 0.1, 0.5)
    hand = Hand(federation, method)
    play, task, state = started(method, rounds=ROUNDS)
    sent, traffic = survey_message(method, task, play, state), Traffic()
    traffic.down(sent, 39)
    state = survey(method, task, play, state, sent)
    assert (traffic.uploads, traffic.downloads) == (0, 6)
    assert (traffic.bytes_up, traffic.bytes_down) == (0, 6 * 39 * 8)
    server = hand.first
    values = [value(hand, server, i) for i in range(hand.n)]
    assert state.select["values"].tolist() == pytest.approx(values, abs=1e-10)
    seen = set()
    for t in range(1, ROUNDS + 1):
        state, log = rounds.play(method, task, play, state)
        ids = log.selected.tolist()
        assert len(ids) == 3
        seen.update(ids)
        assert (log.traffic.uploads, log.traffic.downloads) == (3, 3)
        for i in ids:
            values[i] = value(hand, server, i)  # at the model it received, not at the one it trained
        assert state.select["values"].tolist() == pytest.approx(values, abs=1e-8), f"round {t}"
        uploads = [net.sgd(server, hand.batches(t, i), method.train.eta) for i in ids]
        server = net.average(uploads, [hand.sizes[i] for i in ids])
        assert by_hand.apart(state.collaborate["model"], server) < CLOSE, f"round {t}"
    assert len(seen) > 3


def test_only_a_selection_that_asks_is_surveyed(started: Any) -> None:
    method = fk.methods.adafl()
    play, task, state = started(method)
    assert survey_message(method, task, play, state) is None
