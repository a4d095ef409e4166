"""FedACS against card 1.1: cosines, quantile, mask and mixture by scalars and loops, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import floor
from typing import Any

import hand_network as net
import pytest
import torch
import transcribed as by_hand
from hand_network import CLASSES, FEATURES, ROUNDS, Model
from transcribed import Hand, Round

import fedkin as fk
from fedkin.collaborate import SimilarityThreshold
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD

TRAIN, TEST = (2, 3, 7, 11, 25, 4), (3, 0, 5, 9, 4, 2)
MANY = (2, 3, 7, 11, 25, 4, 5, 2, 6, 3, 8, 2, 9, 4)
STEPS = SGD(eta=0.2, steps=3, batch=4)
EPOCHS = SGD(eta=0.15, steps=None, epochs=2, batch=4)


def quantile(values: list[float], level: float) -> float:
    """Linear interpolation between the order statistics."""
    ordered = sorted(values)
    position = level * (len(ordered) - 1)
    below = floor(position)
    above = min(below + 1, len(ordered) - 1)
    if ordered[below] == ordered[above]:
        return ordered[below]
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def cosines(models: list[Model], origin: Model | None) -> list[list[float]]:
    """Step 3, on the whole pool; of w - theta^0 where an origin is given (A-A8)."""
    moved = models if origin is None else [net.combined((1.0, w), (-1.0, origin)) for w in models]
    vectors = [net.numbers(w) for w in moved]
    m = range(len(models))
    return [[1.0 if i == j else net.cosine(vectors[i], vectors[j]) for j in m] for i in m]


def weighed(models: list[Model], p: float | None, origin: Model | None = None) -> list[list[float]]:
    """Steps 3 to 5: a_ij on the square of the pool."""
    s = cosines(models, origin)
    m = range(len(models))
    delta = float("-inf") if p is None else quantile([s[i][j] for i in m for j in m], p)
    rows = []
    for i in m:
        row = []
        for j in m:
            mask = (s[i][j] > delta and s[i][j] > 0.0) or i == j
            row.append(s[i][j] if mask else 0.0)
        rows.append([value / sum(row) for value in row])
    return rows


def card(hand: Hand) -> Iterator[Round]:
    """Steps 1 to 7. The pool of `pool="all"` is everybody selected so far, this round included."""
    train: Any = hand.method.train
    part: Any = hand.method.collaborate
    cache = [hand.first] * hand.n
    seen: set[int] = set()
    for t in range(1, ROUNDS + 1):
        ids = hand.selected(t)
        seen |= set(ids)
        pool = sorted(seen) if part.pool == "all" else ids
        a = weighed([cache[j] for j in pool], part.p, hand.first if part.similarity == "update" else None)
        sent = {}
        for i in ids:
            row = a[pool.index(i)]
            u = net.combined(*((row[k], cache[j]) for k, j in enumerate(pool)))
            alpha = part.alpha / (1.0 + part.alpha_gamma * (t - 1))
            sent[i] = net.combined((1.0 - alpha, cache[i]), (alpha, u))
        received = [sent.get(i, cache[i]) for i in range(hand.n)]
        for i in ids:
            rate = train.eta / (1.0 + train.gamma * (t - 1))
            cache[i] = net.sgd(sent[i], hand.batches(t, i), rate, train.momentum, train.weight_decay)
        yield Round(sent, {i: cache[i] for i in ids}, {"model": cache}, cache, None, received)


def composed(part: SimilarityThreshold, count: int = 4, train: SGD = STEPS) -> Method:
    return Method("tried", Uniform(count=count), train, Everyone(), part)


PARTS = {
    f"{p}, {pool}, {similarity}": SimilarityThreshold(p, pool, similarity)  # type: ignore[arg-type]
    for p in (None, 0.0, 0.5, 0.9, 1.0)
    for pool in ("selected", "all")
    for similarity in ("model", "update")
}
CASES = {name: composed(part) for name, part in PARTS.items()} | {
    "damped": composed(SimilarityThreshold(0.5, alpha=0.5)),
    "damped, all, update": composed(SimilarityThreshold(None, "all", "update", 0.5)),
    "damped more and more": composed(SimilarityThreshold(0.3, alpha=0.9, alpha_gamma=0.7)),
    "damped more and more, all": composed(SimilarityThreshold(None, "all", alpha_gamma=2.0), 3),
    "damped to nothing": composed(SimilarityThreshold(None, alpha=0.0)),
    "everybody, epochs": composed(SimilarityThreshold(0.5), 6, EPOCHS),
    "epochs, momentum": composed(SimilarityThreshold(0.3, "all"), 4, replace(EPOCHS, momentum=0.5)),
    "alone": composed(SimilarityThreshold(None), 1),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(checked: Any, case: str) -> None:
    checked(CASES[case], card)


@pytest.mark.parametrize(("pool", "similarity"), [("selected", "model"), ("selected", "update"), ("all", "model")])
def test_a_pool_in_which_nine_tenths_select(federate: Any, checked: Any, pool: Any, similarity: Any) -> None:
    """p = 0.9 with a pool of 11 or fewer is Local."""
    federation = federate(MANY, 3, (FEATURES,), CLASSES)
    method = composed(SimilarityThreshold(0.9, pool, similarity), 13, replace(EPOCHS, epochs=1))
    wanted = checked(method, card, on=federation)
    hand = by_hand.Hand(federation, method)
    for t in range(2, ROUNDS + 1):
        ids, before = hand.selected(t), wanted[t - 2].slots["model"]
        shares = [net.numbers(wanted[t - 1].sent[i]) != net.numbers(before[i]) for i in ids]
        assert 0 < sum(shares) < 13  # some have kin and some have none


@pytest.mark.parametrize("pool", ["selected", "all"])
def test_fedacs(checked: Any, pool: Any) -> None:
    method = fk.methods.fedacs(p=0.6, fraction=0.7, epochs=2, batch=4, eta=0.1, pool=pool, alpha=0.8)
    assert method.collaborate == SimilarityThreshold(0.6, pool, "model", 0.8)
    assert (method.trains, method.select) == ("selected", Uniform(fraction=0.7))
    assert type(method.train) is SGD  # no proximal term
    checked(method, card, again=True)


def test_fedacs_with_the_steps_of_the_theorem(checked: Any) -> None:
    """Second part: beta_k = alpha_k / lambda, and both fall like 1 / k."""
    method = fk.methods.fedacs(p=0.3, epochs=1, batch=4, eta=0.1, alpha=0.8, gamma=1.0)
    assert (method.train.gamma, method.collaborate) == (1.0, SimilarityThreshold(0.3, alpha=0.8, alpha_gamma=1.0))
    checked(method, card, again=True)


# the pure functions


@pytest.mark.parametrize("kept", [[1.0] * 6, [1.0, 0.0, 0.5, 1.0, 0.25, 1.0], [0.0] * 6])
@pytest.mark.parametrize("similarity", ["model", "update"])
@pytest.mark.parametrize("p", [None, 0.0, 0.3, 0.5, 0.9, 1.0])
def test_weights_and_mix(p: float | None, similarity: Any, kept: list[float]) -> None:
    models, theta = by_hand.drawn(6, spread=0.7), by_hand.drawn(1, spread=0.0)[0]
    origin = {name: value[0] for name, value in by_hand.stack([theta]).items()}
    part = SimilarityThreshold(p, similarity=similarity)
    k = torch.tensor(kept, dtype=torch.float64)
    found = part.weights(by_hand.stack(models), k, origin=origin)
    rows = by_hand.counted(weighed(models, p, theta if similarity == "update" else None), kept)
    assert set(found) == {"model"}
    by_hand.same(found["model"], rows)
    mixed = part.mix(by_hand.stack(models), k, origin=origin)
    assert by_hand.farthest(mixed, by_hand.blended(rows, models)) < 1e-10


def test_cosines_below_zero_never_count() -> None:
    """A-A4: the models of the test above have some, as updates."""
    models, theta = by_hand.drawn(6, spread=0.7), by_hand.drawn(1, spread=0.0)[0]
    s = cosines(models, theta)
    below = [(i, j) for i in range(6) for j in range(6) if s[i][j] < 0.0]
    assert 0 < len(below) < 30
    origin = {name: value[0] for name, value in by_hand.stack([theta]).items()}
    part = SimilarityThreshold(None, similarity="update")
    found = part.weights(by_hand.stack(models), torch.ones(6, dtype=torch.float64), origin=origin)["model"]
    assert all(found[i, j] == 0.0 for i, j in below)
    assert (found.diagonal() > 0.0).all()


def test_a_model_of_no_length_is_like_nothing_but_itself() -> None:
    models = by_hand.drawn(4)
    models[1] = net.combined((0.0, models[1]))
    found = SimilarityThreshold(None).weights(by_hand.stack(models), torch.ones(4, dtype=torch.float64))["model"]
    assert found[1].tolist() == [0.0, 1.0, 0.0, 0.0]
    assert found[:, 1].tolist() == [0.0, 1.0, 0.0, 0.0]
    by_hand.same(found, weighed(models, None))


def test_the_least_alike_pair_is_left_out_at_p_0_whichever_of_the_two_asks() -> None:
    for seed in range(40):
        models = by_hand.drawn(5, seed)
        found = SimilarityThreshold(0.0).weights(by_hand.stack(models), torch.ones(5, dtype=torch.float64))["model"]
        assert int((found == 0.0).sum()) == 2
        assert torch.equal(found == 0.0, (found == 0.0).T)
