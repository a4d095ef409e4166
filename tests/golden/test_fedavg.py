"""FedAvg, FedProx and Local against transcriptions of their boxes: float64, scalars, loops, no code in common."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import hand_network as net
import numpy as np
import pytest
import torch
from hand_network import CLASSES, FEATURES, ROUNDS, SEED, Model, gradient, network, numbers, places, scored
from transcribed import Hand, Round

from fedkin.collaborate import Mean, Nothing
from fedkin.engines import Plain
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD, Prox

TRAIN, TEST = (1, 3, 7, 25, 10, 12), (2, 5, 0, 9, 1, 4)


def trained(hand: Hand, start: Model, t: int, client: int) -> Model:
    part: Any = hand.method.train
    rate, lam = part.eta, getattr(part, "lam", 0.0)
    for _ in range(t - 1):
        rate *= part.rate_decay
    return net.sgd(start, hand.batches(t, client), rate, part.momentum, part.weight_decay, lam)


def one_model(hand: Hand) -> Iterator[Round]:
    """Cards 2.1 and 2.2."""
    part: Any = hand.method.collaborate
    w = hand.first
    for t in range(1, ROUNDS + 1):
        ids = hand.selected(t)
        sent = dict.fromkeys(ids, w)
        uploads = {i: trained(hand, w, t, i) for i in ids}
        w = net.average(list(uploads.values()), [hand.sizes[i] if part.weights == "size" else 1.0 for i in ids])
        # FedAvg-FT: the model after one local pass, with the batches of the round to come
        post = [trained(hand, w, t + 1, i) for i in range(hand.n)]
        yield Round(sent, uploads, {}, post, w)


def alone(hand: Hand) -> Iterator[Round]:
    """Card 2.13."""
    models = [hand.first] * hand.n
    for t in range(1, ROUNDS + 1):
        for i in hand.selected(t):
            models[i] = trained(hand, models[i], t, i)
        yield Round({}, {}, {"model": models}, models)


STEPS = SGD(eta=0.3, steps=6, batch=4)
EPOCHS = SGD(eta=0.2, steps=None, epochs=2, batch=4, momentum=0.8, weight_decay=0.02, rate_decay=0.9)
TRAINS = {
    "steps": STEPS,
    "steps, momentum": replace(STEPS, momentum=0.9, eta=0.05),
    "epochs": replace(EPOCHS, momentum=0.0, weight_decay=0.0, rate_decay=1.0),
    "epochs, momentum, decays": EPOCHS,
    "cyclic": replace(STEPS, sampler="cyclic", rate_decay=0.7),
}


@pytest.mark.parametrize("train", TRAINS)
def test_fedavg(checked: Any, train: str) -> None:
    checked(Method("fedavg", Uniform(count=3), TRAINS[train], Everyone(), Mean()), one_model, again=True)


@pytest.mark.parametrize("train", TRAINS)
def test_fedprox(checked: Any, train: str) -> None:
    prox = Prox(**TRAINS[train].values(), lam=0.7)  # type: ignore[arg-type]
    checked(Method("fedprox", Uniform(fraction=0.5), prox, Everyone(), Mean()), one_model, again=True)


@pytest.mark.parametrize("count", [6, 2])
@pytest.mark.parametrize("train", TRAINS)
def test_local(checked: Any, train: str, count: int) -> None:
    checked(Method("local", Uniform(count=count), TRAINS[train], Everyone(), Nothing()), alone, again=True)


def test_uniform_weights(checked: Any) -> None:
    method = Method("fedavg", Uniform(count=4), STEPS, Everyone(), Mean("uniform"))
    uniform, sized = (checked(each, one_model)[-1].server for each in (method, replace(method, collaborate=Mean())))
    assert max(abs(p - q) for p, q in zip(numbers(uniform), numbers(sized), strict=True)) > 1e-4


@pytest.mark.parametrize("train", TRAINS)
def test_no_client_trains_on_anything_but_its_own_training_rows(federate: Any, train: str) -> None:
    part = TRAINS[train]
    federation = federate(TRAIN, TEST, (FEATURES,), CLASSES, validation=2, common=5)
    engine = Plain(federation, network(), part, SEED)
    everyone = torch.arange(federation.n)
    others = torch.cat([federation.test.rows, federation.validation.rows, federation.common])
    for t in range(1, 12):
        plan = engine.batching.planned(part, t, everyone)
        assert not torch.isin(plan.rows, others).any()  # padding too
        for client in everyone.tolist():
            real = np.arange(plan.rows.shape[2]) < plan.count[:, client][:, None]
            used = plan.rows[:, client][torch.from_numpy(real)]
            assert len(used) > 0
            assert torch.isin(used, federation.train[client]).all()


def test_the_gradient_by_hand_is_a_gradient(federate: Any) -> None:
    """The transcription's own backward pass, against differences of its own loss."""
    federation = federate((4,), 1, (FEATURES,), CLASSES)
    hand = Hand(federation, Method("local", Uniform(count=1), STEPS, Everyone(), Nothing()))
    samples = [(hand.x[row], hand.y[row]) for row in federation.train[0].tolist()]
    w = copy.deepcopy(hand.first)
    slopes = [row[i] for row, i in places(gradient(w, samples))]
    for k, (row, i) in enumerate(places(w)):
        middle = row[i]
        row[i] = middle + 1e-6
        above = scored(w, samples)[1] / len(samples)
        row[i] = middle - 1e-6
        below = scored(w, samples)[1] / len(samples)
        row[i] = middle
        assert (above - below) / 2e-6 == pytest.approx(slopes[k], abs=1e-8)
