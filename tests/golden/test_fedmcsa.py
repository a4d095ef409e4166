"""FedMCSA and its variants against card 1.2: attention over components by scalars and loops, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
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
from fedkin.errors import BadInput
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


def first_line(models: list[Model], names: tuple[str, ...], tau: float, sigma: float) -> list[list[float]]:
    """psi of eq. (6), first line, for one component, with d(x) = 1 - exp(-x / sigma); where a client's own weight would
    be negative it is 0 and the rest is rescaled."""
    vectors, rows, N = [net.numbers(model, names) for model in models], [], len(models)
    for i in range(N):
        row, total = [0.0] * N, 0.0
        for j in range(N):
            if j != i:
                x = sum((p - q) ** 2 for p, q in zip(vectors[i], vectors[j], strict=True))
                row[j] = tau / N * (exp(-x / sigma) / sigma)
                total += row[j]
        row[i] = 1.0 - total
        rows.append(row if row[i] >= 0.0 else [0.0 if j == i else row[j] / total for j in range(N)])
    return rows


def stepped(tau: float, sigma: float, granularity: str = "layer") -> Mix:
    """A step down the gradient of phi (4), component by component, by the first line of (6)."""

    def mix(models: list[Model], sizes: list[float]) -> list[Model]:
        mixed: list[Model] = [{} for _ in models]
        for names in COMPONENTS[granularity].values():
            psi = first_line(models, names, tau, sigma)
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


def authors(hand: Hand) -> Iterator[Round]:
    """A-M12 in the order of the authors' code: everyone trains on the next of its mini-batches, which are cut once and
    never shuffled; the sample is drawn after training, and only the sampled exchange. The models that they exchange at
    the end of a round are those that ours are sent at the start of the next; at our first start all models are equal,
    so that an exchange changes nothing."""
    train: Any = hand.method.train
    attention: Any = hand.method.collaborate
    endless = []
    for i in range(hand.n):
        samples = [(hand.x[row], hand.y[row]) for row in hand.federation.train[i].tolist()]
        endless.append(cycle([samples[k : k + train.batch] for k in range(0, len(samples), train.batch)]))
    mix, theta, chosen = attended(attention.sigma, "tensor", True), [hand.first] * hand.n, hand.selected(1)
    for t in range(1, ROUNDS + 1):
        sent, received = {i: theta[i] for i in chosen}, theta
        batches = [[next(endless[i]) for _ in range(train.steps)] for i in range(hand.n)]
        theta = [net.sgd(theta[i], batches[i], train.eta, 0.0, 0.001) for i in range(hand.n)]
        yield Round(sent, {i: theta[i] for i in chosen}, {"model": theta}, theta, None, received)
        chosen = hand.selected(t + 1)
        mixed = mix([theta[i] for i in chosen], [hand.sizes[i] for i in chosen])
        theta = [mixed[chosen.index(i)] if i in chosen else theta[i] for i in range(hand.n)]


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
    "first line of (6)": (composed(ComponentAttention(2.0, tau=3.0)), pulled(stepped(3.0, 2.0))),
    "first line of (6), clipped": (
        composed(ComponentAttention(0.5, "tensor", tau=2.0), trains="selected"),
        pulled(stepped(2.0, 0.5, "tensor")),
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
        "fedmcsa_official": (make.fedmcsa_official(sigma=450.0), authors),
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


def test_the_first_line_is_a_step_down_the_gradient_of_phi() -> None:
    """V = U - tau grad phi(U), phi = 1 / (2 N) sum of d over all pairs i != j, each pair once (4), by autograd."""
    models, tau, sigma = by_hand.drawn(4, spread=0.2), 3.0, 5.0
    stacked = by_hand.stack(models)
    theta = {name: value.clone().requires_grad_() for name, value in stacked.items()}
    phi = torch.zeros((), dtype=torch.float64)
    for names in COMPONENTS["layer"].values():
        flat = torch.cat([theta[name].reshape(4, -1) for name in names], 1)
        x = (flat[:, None] - flat[None, :]).square().sum(-1)
        phi = phi + (1 - torch.exp(-x / sigma)).triu(1).sum() / (2 * 4)
    phi.backward()
    found = ComponentAttention(sigma, "layer", tau=tau).mix(stacked, torch.ones(4, dtype=torch.float64))
    for name, value in theta.items():
        assert value.grad is not None
        torch.testing.assert_close(found[name], stacked[name] - tau * value.grad)


def test_the_first_line_needs_a_width_and_no_sizes() -> None:
    for wrong in ({"sigma": 0.0}, {"size_weighted": True}):
        with pytest.raises(BadInput, match="With tau"):
            ComponentAttention(tau=1.0, **wrong)


def test_a_component_of_no_length_is_like_nothing_but_itself() -> None:
    """Zero norm: COS 0 with all, 1 with itself."""
    models = by_hand.drawn(4)
    for i in (1, 2):
        models[i][a] = [0.0] * len(models[i][a])
    found = ComponentAttention(2.0, "tensor").weights(by_hand.stack(models), torch.ones(4, dtype=torch.float64))
    by_hand.same(found[a], attention(models, [1.0] * 4, (a,), 2.0, False))
    alone, itself = exp(0.0 - 2.0), 1.0
    assert found[a][1].tolist() == pytest.approx([v / (itself + 3 * alone) for v in (alone, itself, alone, alone)])
