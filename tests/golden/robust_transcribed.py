"""The robust aggregations (cards 2.14 to 2.16) by scalars and loops."""

from __future__ import annotations

from math import floor, inf

import hand_network as net
from hand_network import Model
from pfedre_transcribed import Vector, median


def krum_scores(rows: list[Vector], f: int) -> Vector:
    scores = []
    for i, row in enumerate(rows):
        squares = []
        for j, other in enumerate(rows):
            if j != i:
                squares.append(sum((x - y) * (x - y) for x, y in zip(row, other, strict=True)))
        scores.append(sum(sorted(squares)[: max(1, len(rows) - f - 2)]))
    return scores


def krum(models: list[Model], f: int) -> Model:
    scores = krum_scores([net.numbers(model) for model in models], f)
    best, lowest = 0, inf
    for i, score in enumerate(scores):
        if score < lowest:
            best, lowest = i, score
    return models[best]


def multi_krum(models: list[Model], f: int) -> Model:
    scores = krum_scores([net.numbers(model) for model in models], f)
    best = sorted(range(len(models)), key=lambda i: (scores[i], i))[: len(models) - f]
    return net.average([models[i] for i in best], [1.0] * len(best))


def trimmed(models: list[Model], beta: float) -> Model:
    n = len(models)
    cut = floor(beta * n + 1e-9)
    if 2 * cut >= n:
        return middle(models)
    result = net.combined((1.0, models[0]))
    every = [net.numbers(model) for model in models]
    for k, (row, i) in enumerate(net.places(result)):
        rest = sorted(values[k] for values in every)[cut : n - cut]
        row[i] = sum(rest) / len(rest)
    return result


def middle(models: list[Model]) -> Model:
    result = net.combined((1.0, models[0]))
    every = [net.numbers(model) for model in models]
    for k, (row, i) in enumerate(net.places(result)):
        row[i] = median([values[k] for values in every])
    return result
