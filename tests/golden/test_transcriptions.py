"""FedAvg, FedProx and Local against transcriptions of their boxes: float64, scalars, loops, no code in common."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from transcribed import (
    CLASSES,
    FEATURES,
    ROUNDS,
    SEED,
    A,
    Hand,
    Model,
    apart,
    average,
    gradient,
    network,
    places,
    scored,
    sgd,
)

import fedkin as fk
from fedkin import round as rounds
from fedkin.collaborate import Mean, Nothing
from fedkin.engines import ENGINES, Plain, Stacked
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD, Prox

TRAIN, TEST = (1, 3, 7, 25, 10, 12), (2, 5, 0, 9, 1, 4)


# one run by hand


class ByHand(Hand):
    """The two boxes: one model for all, and each alone."""

    def __init__(self, federation: fk.Federation, method: Method):
        super().__init__(federation, method)
        self.lines: list[dict[str, Any]] = []

    def trained(self, start: Model, t: int, client: int) -> Model:
        part: Any = self.method.train
        rate = part.eta
        for _ in range(t - 1):
            rate *= part.rate_decay
        return sgd(start, self.batches(t, client), rate, part.momentum, part.weight_decay, getattr(part, "lam", 0.0))

    def accuracy(self, models: list[Model]) -> dict[str, float]:
        """macro and micro over the clients' own test samples, and the mean loss over all of them."""
        each, right, total, cost = [], 0, 0, 0.0
        for client in range(len(TRAIN)):
            rows = self.federation.test[client].tolist()
            hits, loss = scored(models[client], [(self.x[row], self.y[row]) for row in rows])
            if rows:
                each.append(hits / len(rows))
            right, total, cost = right + hits, total + len(rows), cost + loss
        return {"macro": sum(each) / len(each), "micro": right / total, "loss": cost / total}

    def one_model(self) -> Model:
        """Cards 2.1 and 2.2."""
        w = self.first
        for t in range(1, ROUNDS + 1):
            ids = self.selected(t)
            uploads = [self.trained(w, t, client) for client in ids]
            size = self.method.collaborate.weights == "size"  # type: ignore[attr-defined]
            w = average(uploads, [float(TRAIN[client]) if size else 1.0 for client in ids])
            # FedAvg-FT: the model after one local pass, with the batches of the round to come
            post = [self.trained(w, t + 1, client) for client in range(len(TRAIN))]
            self.lines.append({"global": self.accuracy([w] * len(TRAIN)), "post": self.accuracy(post)})
        return w

    def alone(self) -> list[Model]:
        """Card 2.13."""
        models = [self.first] * len(TRAIN)
        for t in range(1, ROUNDS + 1):
            for client in self.selected(t):
                models[client] = self.trained(models[client], t, client)
            self.lines.append({"post": self.accuracy(models)})
        return models


def compared(lines: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    assert len(lines) == len(wanted) == ROUNDS
    for line, hand in zip(lines, wanted, strict=True):
        assert set(line["accuracy"]) == set(hand)
        for kind, values in hand.items():
            assert line["accuracy"][kind]["macro"] == pytest.approx(values["macro"], abs=1e-12)
            assert line["accuracy"][kind]["micro"] == pytest.approx(values["micro"], abs=1e-12)
            assert line["loss"][kind] == pytest.approx(values["loss"], abs=1e-8)


STEPS = SGD(eta=0.3, steps=6, batch=4)
EPOCHS = SGD(eta=0.2, steps=None, epochs=2, batch=4, momentum=0.8, weight_decay=0.02, rate_decay=0.9)
TRAINS = {
    "steps": STEPS,
    "steps, momentum": replace(STEPS, momentum=0.9, eta=0.05),
    "epochs": replace(EPOCHS, momentum=0.0, weight_decay=0.0, rate_decay=1.0),
    "epochs, momentum, decays": EPOCHS,
    "cyclic": replace(STEPS, sampler="cyclic", rate_decay=0.7),
}
PROXES = {name: Prox(**part.values(), lam=0.7) for name, part in TRAINS.items()}  # type: ignore[arg-type]


def ran(method: Method, federation: fk.Federation, engine: str) -> fk.Result:
    experiment = fk.Experiment(
        method, federation, network(), ROUNDS, SEED, engine, evaluate_every=1, chunk=4, dtype="float64"
    )
    return fk.run(experiment)


@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize("train", TRAINS)
def test_fedavg(federate: Any, engine: str, train: str) -> None:
    method = Method("fedavg", Uniform(count=3), TRAINS[train], Everyone(), Mean())
    federation = federate(TRAIN, TEST, (FEATURES,), CLASSES)
    hand = ByHand(federation, method)
    wanted = hand.one_model()
    result = ran(method, federation, engine)
    assert apart(result.models["global"], wanted) < 1e-8
    compared(result.rounds, hand.lines)


@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize("train", PROXES)
def test_fedprox(federate: Any, engine: str, train: str) -> None:
    method = Method("fedprox", Uniform(fraction=0.5), PROXES[train], Everyone(), Mean())
    federation = federate(TRAIN, TEST, (FEATURES,), CLASSES)
    hand = ByHand(federation, method)
    wanted = hand.one_model()
    result = ran(method, federation, engine)
    assert apart(result.models["global"], wanted) < 1e-8
    compared(result.rounds, hand.lines)


@pytest.mark.parametrize("count", [6, 2])
@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize("train", TRAINS)
def test_local(federate: Any, engine: str, train: str, count: int) -> None:
    method = Method("local", Uniform(count=count), TRAINS[train], Everyone(), Nothing())
    federation = federate(TRAIN, TEST, (FEATURES,), CLASSES)
    hand = ByHand(federation, method)
    wanted = hand.alone()
    result = ran(method, federation, engine)
    for client, model in enumerate(wanted):
        own = {name: value[client] for name, value in result.models["personal"].items()}
        assert apart(own, model) < 1e-8
    compared(result.rounds, hand.lines)
    assert np.isnan(result.accuracies["post"][TEST.index(0)])


def test_uniform_weights(federate: Any) -> None:
    method = Method("fedavg", Uniform(count=4), STEPS, Everyone(), Mean("uniform"))
    federation = federate(TRAIN, TEST, (FEATURES,), CLASSES)
    result = ran(method, federation, "stacked")
    assert apart(result.models["global"], ByHand(federation, method).one_model()) < 1e-8
    sized = ran(replace(method, collaborate=Mean("size")), federation, "stacked")
    assert not torch.allclose(sized.models["global"][A], result.models["global"][A], atol=1e-4)


def test_each_round_of_fedavg(federate: Any, start: Any) -> None:
    """Not only the last model: the server after every round, and each upload on the way."""
    method = Method("fedprox", Uniform(count=3), PROXES["epochs, momentum, decays"], Everyone(), Mean())
    federation = federate(TRAIN, TEST, (FEATURES,), CLASSES)
    hand = ByHand(federation, method)
    engine, task, state = start(Stacked, method, federation, network(), seed=SEED, chunk=2, dtype=torch.float64)
    w = hand.first
    for t in range(1, ROUNDS + 1):
        ids = hand.selected(t)
        sent, _ = method.collaborate.send(state.collaborate, task, torch.tensor(ids), None)
        reply = engine.train(method.train, sent, torch.tensor(ids), t, keep=False)
        uploads = [hand.trained(w, t, client) for client in ids]
        for k, upload in enumerate(uploads):
            assert apart({name: value[k] for name, value in reply.upload["model"].items()}, upload) < 1e-9
        w = average(uploads, [float(TRAIN[client]) for client in ids])
        state, log = rounds.play(method, task, engine, state)
        assert log.selected.tolist() == ids
        assert apart(state.collaborate["model"], w) < 1e-9


@pytest.mark.parametrize("train", TRAINS)
def test_no_client_trains_on_anything_but_its_own_training_rows(federate: Any, train: str) -> None:
    part = TRAINS[train]
    federation = federate(TRAIN, TEST, (FEATURES,), CLASSES, validation=2, common=5)
    engine = Plain(federation, network(), part, SEED)
    everyone = torch.arange(federation.n)
    others = torch.cat([federation.test.rows, federation.validation.rows, federation.common])
    for t in range(1, 12):
        plan = engine.passed(part, t, everyone)
        assert not torch.isin(plan.rows, others).any()  # padding too
        for client in everyone.tolist():
            real = np.arange(plan.rows.shape[2]) < plan.count[:, client][:, None]
            used = plan.rows[:, client][torch.from_numpy(real)]
            assert len(used) > 0
            assert torch.isin(used, federation.train[client]).all()


def test_the_gradient_by_hand_is_a_gradient(federate: Any) -> None:
    """The transcription's own backward pass, against differences of its own loss."""
    federation = federate((4,), 1, (FEATURES,), CLASSES)
    hand = ByHand(federation, Method("local", Uniform(count=1), STEPS, Everyone(), Nothing()))
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
