"""FedMCSA and its variants against card 1.2: attention over components by scalars and loops, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import exp
from typing import Any

import hand_network as net
import pytest
import torch
import transcribed as by_hand
from hand_network import COMPONENTS, ROUNDS, Model, a
from small import tiny
from transcribed import Card, Hand, Mix, Round

import fedkin as fk
from fedkin.collaborate import ComponentAttention, MeanBefore
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD, Moreau, Prox

TRAIN, TEST = (2, 3, 7, 11, 25), (3, 0, 5, 9, 4)
SMALL = Prox(eta=0.2, steps=3, batch=4, lam=0.8)
DOUBLE = Moreau(eta=0.05, eta_p=0.1, lam=3.0, K=3, steps=3, batch=4)


def attention(
    models: list[Model], sizes: list[float], names: tuple[str, ...], sigma: float, size_weighted: bool
) -> list[list[float]]:
    """Step 2 for one component, with A-M1; size-weighted as in A-M12. The diagonal of COS is exactly 1."""
    vectors = [net.numbers(model, names) for model in models]
    rows = []
    for i in range(len(models)):
        row = []
        for k in range(len(models)):
            c = 1.0 if i == k else net.cosine(vectors[i], vectors[k])
            row.append(exp(sigma * c - sigma))
        total = sum(row)
        row = [value / total for value in row]
        if size_weighted:
            row = [value * sizes[k] / sum(sizes) for k, value in enumerate(row)]
            total = sum(row)
            row = [value / total for value in row]
        rows.append(row)
    return rows


def attended(sigma: float, granularity: str = "layer", size_weighted: bool = False) -> Mix:
    """Steps 2 and 3: every component of W_i apart."""

    def mix(models: list[Model], sizes: list[float]) -> list[Model]:
        mixed: list[Model] = [{} for _ in models]
        for names in COMPONENTS[granularity].values():
            psi = attention(models, sizes, names, sigma, size_weighted)
            for i, whole in enumerate(by_hand.blended(psi, models)):
                mixed[i] |= {name: whole[name] for name in names}
        return mixed

    return mix


def meant(models: list[Model], sizes: list[float]) -> list[Model]:
    """FedMCSA^-MCSA."""
    return [net.average(models, sizes)] * len(models)


def double_loops(hand: Hand, mix: Mix) -> Iterator[Round]:
    """pFedMe^+MCSA."""
    w, theta = [hand.first] * hand.n, [hand.first] * hand.n
    for t in range(1, ROUNDS + 1):
        ids = hand.selected(t)
        mixed = mix([w[i] for i in ids], [hand.sizes[i] for i in ids])
        for k, i in enumerate(ids):
            w[i] = mixed[k]
        received = list(w)
        for i in range(hand.n):
            if hand.method.trains == "everyone" or i in ids:
                w[i], theta[i] = net.double_loop(w[i], hand.batches(t, i), hand.method.train)
        sent = dict(zip(ids, mixed, strict=True))
        slots = {"model": w, "theta": theta}
        yield Round(sent, {i: w[i] for i in ids}, slots, theta, None, received, {"post-w": w})


def composed(collaborate: Any, train: Any = SMALL, trains: str = "everyone") -> Method:
    return Method("tried", Uniform(count=3), train, Everyone(), collaborate, trains=trains)  # type: ignore[arg-type]


def pulled(mix: Mix, mean: bool = False) -> Card:
    return lambda hand: by_hand.mixed_then_pulled(hand, mix, mean)


CASES: dict[str, tuple[Method, Card]] = {
    f"{granularity}, sigma {sigma:g}{', sized' if sized else ''}": (
        composed(ComponentAttention(sigma, granularity, sized)),  # type: ignore[arg-type]
        pulled(attended(sigma, granularity, sized)),
    )
    for granularity in COMPONENTS
    for sigma, sized in ((5.0, False), (5.0, True), (50.0, False))
}
CASES |= {
    "sigma 0": (composed(ComponentAttention(0.0)), pulled(attended(0.0))),
    "sigma 1000": (composed(ComponentAttention(1000.0)), pulled(attended(1000.0))),
    "selected train": (composed(ComponentAttention(5.0), trains="selected"), pulled(attended(5.0))),
    "epochs, momentum": (
        composed(ComponentAttention(5.0), replace(SMALL, steps=None, epochs=2, momentum=0.5)),
        pulled(attended(5.0)),
    ),
    "without attention": (composed(MeanBefore()), pulled(meant, mean=True)),
    "without attention, uniform": (
        composed(MeanBefore("uniform")),
        pulled(lambda models, sizes: meant(models, [1.0] * len(models)), mean=True),
    ),
    "local SGD": (composed(ComponentAttention(5.0), SGD(eta=0.2, steps=3, batch=4)), pulled(attended(5.0))),
    "pFedMe": (composed(ComponentAttention(5.0), DOUBLE), lambda hand: double_loops(hand, attended(5.0))),
    "pFedMe, selected train": (
        composed(ComponentAttention(5.0), DOUBLE, "selected"),
        lambda hand: double_loops(hand, attended(5.0)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(checked: Any, case: str) -> None:
    method, card = CASES[case]
    checked(method, card)


def named() -> dict[str, tuple[Method, Card]]:
    make = fk.methods
    return {
        "fedmcsa": (make.fedmcsa(), pulled(attended(50.0))),
        "fedmcsa, tensor": (make.fedmcsa(lam=2.0, granularity="tensor"), pulled(attended(50.0, "tensor"))),
        "fedmcsa, model": (make.fedmcsa(sigma=9.0, granularity="model"), pulled(attended(9.0, "model"))),
        "fedmcsa, selected": (make.fedmcsa(sigma=9.0, trains="selected"), pulled(attended(9.0))),
        "fedmcsa, official": (make.fedmcsa(official=True), pulled(attended(50.0, "tensor", True))),
        "fedmcsa, official, 1000": (
            make.fedmcsa(sigma=1000.0, official=True),
            pulled(attended(1000.0, "tensor", True)),
        ),
        "fedmcsa_without_mcsa": (make.fedmcsa_without_mcsa(), pulled(meant, mean=True)),
        "fedavg_mcsa": (make.fedavg_mcsa(), pulled(attended(50.0))),
        "pfedme_mcsa": (make.pfedme_mcsa(), lambda hand: double_loops(hand, attended(50.0))),
    }


@pytest.mark.parametrize("name", list(named()))
def test_named_methods(checked: Any, name: str) -> None:
    method, card = named()[name]
    checked(tiny(method), card, again=True)


# the pure functions


KEPT = {"all": [1.0] * 5, "some": [1.0, 0.0, 0.5, 1.0, 0.25], "none": [0.0] * 5}


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("sized", [False, True])
@pytest.mark.parametrize("granularity", COMPONENTS)
def test_weights_and_mix(granularity: Any, sized: bool, kept: str) -> None:
    part = ComponentAttention(6.0, granularity, sized)
    models = by_hand.drawn(5)
    sizes = torch.tensor(TRAIN, dtype=torch.float64)
    k = torch.tensor(KEPT[kept], dtype=torch.float64)
    found = part.weights(by_hand.stack(models), k, sizes=sizes)
    mixed = part.mix(by_hand.stack(models), k, sizes=sizes)
    assert set(found) == set(COMPONENTS[granularity])
    for component, names in COMPONENTS[granularity].items():
        rows = by_hand.counted(attention(models, list(map(float, TRAIN)), names, 6.0, sized), KEPT[kept])
        by_hand.same(found[component], rows)
        for i, whole in enumerate(by_hand.blended(rows, models)):
            part_of = {name: whole[name] for name in names}
            assert by_hand.apart({name: mixed[name][i] for name in names}, part_of) < 1e-10


def test_a_component_of_no_length_is_like_nothing_but_itself() -> None:
    """Zero norm: COS 0 with all, 1 with itself."""
    models = by_hand.drawn(4)
    for i in (1, 2):
        models[i][a] = [0.0] * len(models[i][a])
    found = ComponentAttention(2.0, "tensor").weights(by_hand.stack(models), torch.ones(4, dtype=torch.float64))
    by_hand.same(found[a], attention(models, [1.0] * 4, (a,), 2.0, False))
    alone, itself = exp(0.0 - 2.0), 1.0
    assert found[a][1].tolist() == pytest.approx([v / (itself + 3 * alone) for v in (alone, itself, alone, alone)])
