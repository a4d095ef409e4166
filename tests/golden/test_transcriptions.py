"""FedAvg, FedProx and Local against transcriptions of their boxes: float64, scalars, loops, no code in common.

Taken from fedkin are only the random choices (who is selected, which rows a batch has) and the first model. A model
here is {parameter name: nested lists of numbers}; a network is x -> tanh(A x + a) -> B h + b.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from math import exp, log, tanh
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fedkin as fk
from fedkin import round as rounds
from fedkin.collaborate import Mean, Nothing
from fedkin.core.rng import generator
from fedkin.engines import ENGINES, Plain, Stacked
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD, Prox

FEATURES, HIDDEN, CLASSES = 5, 4, 3
TRAIN, TEST = (1, 3, 7, 25, 10, 12), (2, 5, 0, 9, 1, 4)
ROUNDS, SEED = 5, 3
A, a, B, b = "0.weight", "0.bias", "2.weight", "2.bias"

Model = dict[str, Any]
Sample = tuple[list[float], int]


def network() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        return nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, CLASSES))


# the network by hand


def logits(w: Model, x: list[float]) -> tuple[list[float], list[float]]:
    h = []
    for j in range(HIDDEN):
        total = w[a][j]
        for i in range(FEATURES):
            total += w[A][j][i] * x[i]
        h.append(tanh(total))
    z = []
    for c in range(CLASSES):
        total = w[b][c]
        for j in range(HIDDEN):
            total += w[B][c][j] * h[j]
        z.append(total)
    return z, h


def probabilities(z: list[float]) -> list[float]:
    top = max(z)
    e = [exp(value - top) for value in z]
    return [value / sum(e) for value in e]


def gradient(w: Model, samples: list[Sample]) -> Model:
    """Of the mean cross-entropy over the samples."""
    g: Model = {A: [[0.0] * FEATURES for _ in range(HIDDEN)], a: [0.0] * HIDDEN}
    g |= {B: [[0.0] * HIDDEN for _ in range(CLASSES)], b: [0.0] * CLASSES}
    for x, y in samples:
        z, h = logits(w, x)
        p = probabilities(z)
        dz = [(p[c] - (1.0 if c == y else 0.0)) / len(samples) for c in range(CLASSES)]
        for c in range(CLASSES):
            g[b][c] += dz[c]
            for j in range(HIDDEN):
                g[B][c][j] += dz[c] * h[j]
        for j in range(HIDDEN):
            dh = 0.0
            for c in range(CLASSES):
                dh += dz[c] * w[B][c][j]
            dh *= 1.0 - h[j] * h[j]
            g[a][j] += dh
            for i in range(FEATURES):
                g[A][j][i] += dh * x[i]
    return g


def scored(w: Model, samples: list[Sample]) -> tuple[int, float]:
    """How many are right, and the summed loss."""
    right, loss = 0, 0.0
    for x, y in samples:
        z, _ = logits(w, x)
        best = 0
        for c in range(CLASSES):
            if z[c] > z[best]:
                best = c
        right += best == y
        loss -= log(probabilities(z)[y])
    return right, loss


# numbers of a model, one at a time


def places(w: Model) -> list[tuple[Any, int]]:
    found = []
    for name in (A, B):
        for row in w[name]:
            found += [(row, i) for i in range(len(row))]
    for name in (a, b):
        found += [(w[name], i) for i in range(len(w[name]))]
    return found


def sgd(start: Model, batches: list[list[Sample]], rate: float, momentum: float, decay: float, mu: float) -> Model:
    """SGD(theta, D, mode, eta, mom, extra) of section 0 with extra = mu (theta - W); W is where it starts."""
    w, centre = copy.deepcopy(start), copy.deepcopy(start)
    velocity = [0.0] * len(places(w))
    for samples in batches:
        slopes = [row[i] for row, i in places(gradient(w, samples))]
        centres = [row[i] for row, i in places(centre)]
        for k, (row, i) in enumerate(places(w)):
            total = slopes[k] + decay * row[i] + mu * (row[i] - centres[k])
            velocity[k] = momentum * velocity[k] + total
            row[i] -= rate * velocity[k]
    return w


def average(models: list[Model], weights: list[float]) -> Model:
    result = copy.deepcopy(models[0])
    for k, (row, i) in enumerate(places(result)):
        total, weight = 0.0, 0.0
        for model, share in zip(models, weights, strict=True):
            other, j = places(model)[k]
            total += share * other[j]
            weight += share
        row[i] = total / weight
    return result


# one run by hand


class ByHand:
    """The clients' samples and batches, and the two boxes: one model for all, and each alone."""

    def __init__(self, federation: fk.Federation, method: Method):
        self.method, self.federation = method, federation
        self.x, self.y = federation.x.double().tolist(), federation.y.tolist()
        self.engine = Plain(federation, network(), method.train, SEED, own=method.collaborate.own, dtype=torch.float64)
        self.task = fk.Task(federation.n, federation.train.sizes, ROUNDS, self.engine.network.model, lambda m, b: None)
        self.first = {name: value.tolist() for name, value in self.engine.network.model.items()}
        self.lines: list[dict[str, Any]] = []

    def selected(self, t: int) -> list[int]:
        return self.method.select({}, self.task, t, generator(SEED, "select", t))[0].tolist()

    def batches(self, t: int, client: int) -> list[list[Sample]]:
        plan = self.engine.passed(self.method.train, t, torch.tensor([client]))
        found = []
        for rows, count in zip(plan.rows[:, 0].tolist(), plan.count[:, 0].tolist(), strict=True):
            assert count > 0
            found.append([(self.x[row], self.y[row]) for row in rows[:count]])
        return found

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


def apart(found: dict[str, torch.Tensor], wanted: Model) -> float:
    assert set(found) == set(wanted)
    return max(float(np.abs(found[name].numpy() - np.array(wanted[name])).max()) for name in wanted)


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
