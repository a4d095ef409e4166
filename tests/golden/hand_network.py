"""A network by hand: numbers of models one at a time, with loops.

A model is {parameter name: nested lists of numbers}; the network is x -> tanh(A x + a) -> B h + b.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import exp, log, sqrt, tanh
from typing import Any

import torch
from torch import nn

FEATURES, HIDDEN, CLASSES = 5, 4, 3
ROUNDS, SEED = 3, 3
A, a, B, b = "0.weight", "0.bias", "2.weight", "2.bias"
COMPONENTS: dict[str, dict[str, tuple[str, ...]]] = {
    "layer": {"0": (A, a), "2": (B, b)},
    "tensor": {A: (A,), a: (a,), B: (B,), b: (b,)},
    "model": {"model": (A, a, B, b)},
}
CLOSE = 1e-8

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


def slope(z: list[float], y: int, samples: int) -> list[float]:
    """Of the cross-entropy of one of so many samples, by its logits."""
    p = probabilities(z)
    return [(p[c] - (1.0 if c == y else 0.0)) / samples for c in range(CLASSES)]


def blank() -> Model:
    g: Model = {A: [[0.0] * FEATURES for _ in range(HIDDEN)], a: [0.0] * HIDDEN}
    return g | {B: [[0.0] * HIDDEN for _ in range(CLASSES)], b: [0.0] * CLASSES}


def backward(g: Model, w: Model, x: list[float], h: list[float], dz: list[float]) -> None:
    """Add to g what one sample with these slopes by its logits gives."""
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


def gradient(w: Model, samples: list[Sample]) -> Model:
    """g_B(w): of the mean cross-entropy over the samples."""
    g = blank()
    for x, y in samples:
        z, h = logits(w, x)
        backward(g, w, x, h, slope(z, y, len(samples)))
    return g


def scored_by(predict: Callable[[list[float]], list[float]], samples: list[Sample]) -> tuple[int, float]:
    """How many are right, and the summed loss."""
    right, loss = 0, 0.0
    for x, y in samples:
        z = predict(x)
        best = 0
        for c in range(CLASSES):
            if z[c] > z[best]:
                best = c
        right += best == y
        loss -= log(probabilities(z)[y])
    return right, loss


def scored(w: Model, samples: list[Sample]) -> tuple[int, float]:
    return scored_by(lambda x: logits(w, x)[0], samples)


# numbers of a model, one at a time


def places(w: Model, names: tuple[str, ...] = (A, B, a, b)) -> list[tuple[Any, int]]:
    found = []
    for name in names:
        for row in w[name]:
            if isinstance(row, list):
                found += [(row, i) for i in range(len(row))]
        if not isinstance(w[name][0], list):
            found += [(w[name], i) for i in range(len(w[name]))]
    return found


def numbers(w: Model, names: tuple[str, ...] = (A, B, a, b)) -> list[float]:
    return [row[i] for row, i in places(w, names)]


def combined(*terms: tuple[float, Model]) -> Model:
    """The sum of numbers times models."""
    result = copy.deepcopy(terms[0][1])
    each = [(scale, numbers(model)) for scale, model in terms]
    for k, (row, i) in enumerate(places(result)):
        row[i] = 0.0
        for scale, values in each:
            row[i] += scale * values[k]
    return result


def dot(p: list[float], q: list[float]) -> float:
    total = 0.0
    for x, y in zip(p, q, strict=True):
        total += x * y
    return total


def cosine(p: list[float], q: list[float]) -> float:
    """COS of section 0, off the diagonal."""
    lengths = sqrt(dot(p, p)), sqrt(dot(q, q))
    if lengths[0] < 1e-12 or lengths[1] < 1e-12:
        return 0.0
    return min(1.0, max(-1.0, dot(p, q) / (lengths[0] * lengths[1])))


def average(models: list[Model], weights: list[float]) -> Model:
    """WAVG of section 0."""
    total = 0.0
    for weight in weights:
        total += weight
    return combined(*((weight / total, model) for weight, model in zip(weights, models, strict=True)))


def sgd(
    start: Model,
    batches: list[list[Sample]],
    rate: float,
    momentum: float = 0.0,
    decay: float = 0.0,
    mu: float = 0.0,
    centre: Model | None = None,
) -> Model:
    """SGD(theta, D, mode, eta, mom, extra) of section 0 with extra = mu (theta - centre), by default where it starts,
    and decay theta."""
    w = copy.deepcopy(start)
    centres = numbers(start if centre is None else centre)
    velocity = [0.0] * len(places(w))
    for samples in batches:
        slopes = numbers(gradient(w, samples))
        for k, (row, i) in enumerate(places(w)):
            total = slopes[k] + decay * row[i] + mu * (row[i] - centres[k])
            velocity[k] = momentum * velocity[k] + total
            row[i] -= rate * velocity[k]
    return w


def double_loop(w: Model, batches: list[Any], part: Any) -> tuple[Model, Model]:
    """Card 2.6: (w_i, theta_i)."""
    theta = w
    for samples in batches:
        for _ in range(part.K):
            g = gradient(theta, samples)
            pull = combined((1.0, theta), (-1.0, w))
            theta = combined(
                (1.0, theta), (-part.eta_p, g), (-part.eta_p * part.lam, pull), (-part.eta_p * part.weight_decay, theta)
            )
        w = combined((1.0, w), (-part.eta * part.lam, combined((1.0, w), (-1.0, theta))))
    return w, theta
