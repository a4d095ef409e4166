"""Pooled against plain SGD on the concatenated samples: float64, scalars, loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hand_network as net
import pytest
import torch
from hand_network import ROUNDS, SEED, Model
from transcribed import Hand, apart, farthest

import fedkin as fk
from fedkin import evaluate
from fedkin import round as rounds
from fedkin.core import batches, rng
from fedkin.engines import Plain, Stacked
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Pooled

TRAIN, TEST = (1, 3, 7, 25, 10, 12), (2, 5, 0, 9, 1, 4)

STEPS = Pooled(eta=0.1, steps=3, batch=4)
EPOCHS = Pooled(eta=0.1, steps=None, epochs=2, batch=4, momentum=0.5, weight_decay=0.02, rate_decay=0.9)
TRAINS = {
    "steps": (STEPS, 3 * len(TRAIN)),
    "epochs": (EPOCHS, 2 * -(-sum(TRAIN) // 4)),
    "cyclic": (replace(STEPS, sampler="cyclic"), 3 * len(TRAIN)),
    "a total of steps": (replace(STEPS, total=5), 5),
    "a total in place of epochs": (replace(EPOCHS, total=7), 7),
}


def pooled(train: Pooled) -> Method:
    return replace(fk.methods.pooled(), train=train)


def in_pool(hand: Hand, ids: list[int], t: int, steps: int) -> list[list[net.Sample]]:
    """The batches of one round: rows of all these clients' samples, one client after another, as one client would draw
    them."""
    train: Any = hand.method.train
    rows = [row for client in ids for row in hand.federation.train[client].tolist()]
    epochs = train.epochs if train.total is None else None
    given = steps if epochs is None else None
    keys = rng.keys(SEED, "batches", t, torch.tensor([0]).numpy())
    size = torch.tensor([len(rows)]).numpy()
    plan = batches.planned(size, keys, t, train.batch, given, epochs, train.sampler)
    assert plan.batches.tolist() == [steps]
    return [
        [(hand.x[rows[place]], hand.y[rows[place]]) for place in places[:count]]
        for places, count in zip(plan.rows[0].tolist(), plan.count[0].tolist(), strict=True)
    ]


@pytest.mark.parametrize("kind", [Stacked, Plain])
@pytest.mark.parametrize("train", TRAINS)
def test_pooled_is_sgd_on_everybodys_samples(federation: Any, start: Any, train: str, kind: Any) -> None:
    part, steps = TRAINS[train]
    method = pooled(part)
    hand = Hand(federation, method)
    engine, task, state = start(kind, method, federation, net.network(), seed=SEED, dtype=torch.float64)
    everyone, w, used = list(range(len(TRAIN))), hand.first, 0
    for t in range(1, ROUNDS + 1):
        mine = in_pool(hand, everyone, t, steps)
        used += sum(map(len, mine))
        rate = part.eta * part.rate_decay ** (t - 1)
        w = net.sgd(w, mine, rate, part.momentum, part.weight_decay)
        state, log = rounds.play(method, task, engine, state)
        assert log.selected.tolist() == everyone
        assert (log.traffic.uploads, log.traffic.downloads) == (0, 0)
        model = method.collaborate.model(state.collaborate)
        assert model is not None
        assert apart(model, w) < 1e-9
        post: list[Model] = []
        for client in everyone:  # a client that takes the model home trains it on its own samples, as in FedAvg
            own = hand.batches(t + 1, client)
            if part.epochs is None:
                assert len(own) == part.steps
            post.append(net.sgd(w, own, part.eta * part.rate_decay**t, part.momentum, part.weight_decay))
        found = evaluate.personal_models(method, task, engine, state, torch.arange(len(TRAIN)))
        assert farthest(found, post) < 1e-9
    if part.epochs and part.total is None:
        assert used == ROUNDS * part.epochs * sum(TRAIN)  # as many visits of samples as all clients alone make


def test_the_pool_holds_the_selected_clients_only(federation: Any, start: Any) -> None:
    method = replace(pooled(STEPS), select=Uniform(count=2))
    hand = Hand(federation, method)
    engine, task, state = start(Stacked, method, federation, net.network(), seed=SEED, dtype=torch.float64)
    state, log = rounds.play(method, task, engine, state)
    w = net.sgd(hand.first, in_pool(hand, log.selected.tolist(), 1, 2 * 3), STEPS.eta)
    model = method.collaborate.model(state.collaborate)
    assert model is not None
    assert apart(model, w) < 1e-9
