"""AdaFL against card 1.4 by scalars and loops over 10 rounds: on FedAvg, FedProx, SCAFFOLD and FedMCSA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, sqrt
from typing import Any

import hand_network as net
import pytest
import test_fedmcsa
import test_scaffold
import torch
import transcribed as by_hand
from hand_network import CLOSE, SEED, Model
from torch import Tensor
from transcribed import Hand

import fedkin as fk
from fedkin import round as rounds
from fedkin.core.rng import generator
from fedkin.messages import Slot, Task
from fedkin.parts import Method, Select
from fedkin.select import Attention, Steps
from fedkin.select.draw import drawn

TRAIN, TEST = (2, 3, 7, 11, 25, 4, 9, 6, 13, 5), (3, 1, 5, 2, 4, 0, 3, 2, 1, 3)
T = 10
make = fk.methods

Trained = tuple[dict[int, Model], dict[int, Model]]  # what each selected client uploaded, and what it is measured from
Base = Callable[[int, list[int]], Trained]


# base rounds by hand: step 2 of the card


def averaged(hand: Hand) -> Base:
    """FedAvg and FedProx; measured from the new common model."""
    part: Any = hand.method.train
    server = [hand.first]

    def base(t: int, ids: list[int]) -> Trained:
        pull = getattr(part, "lam", 0.0)
        found = {
            i: net.sgd(server[-1], hand.batches(t, i), part.rate(t), part.momentum, part.weight_decay, pull)
            for i in ids
        }
        server.append(net.average(list(found.values()), [hand.sizes[i] for i in ids]))
        return found, dict.fromkeys(ids, server[-1])

    return base


def controlled(hand: Hand) -> Base:
    """SCAFFOLD; the models alone are measured."""
    server = test_scaffold.Server.first(hand)

    def base(t: int, ids: list[int]) -> Trained:
        found, _ = server.round(hand, t, ids)
        return found, dict.fromkeys(ids, server.w)

    return base


def attended(hand: Hand) -> Base:
    """FedMCSA; measured from what was sent, as there is no common model. Everyone trains."""
    part: Any = hand.method.train
    theta, centre = [hand.first] * hand.n, [hand.first] * hand.n
    mix = test_fedmcsa.attended(hand.method.collaborate.sigma)

    def base(t: int, ids: list[int]) -> Trained:
        sent = dict(zip(ids, mix([theta[i] for i in ids], [hand.sizes[i] for i in ids]), strict=True))
        for i in range(hand.n):
            theta[i], centre[i] = sent.get(i, theta[i]), sent.get(i, centre[i])
            theta[i] = net.sgd(theta[i], hand.batches(t, i), part.eta, mu=part.lam, centre=centre[i])
        return {i: theta[i] for i in ids}, sent

    return base


# the box


def share(t: int, start: str, end: str, levels: int) -> Fraction:
    """gamma^(t), exactly."""
    first, last = Fraction(start), Fraction(end)
    step = (last - first) / (levels - 1)
    return first + step * min(levels - 1, floor((t - 1) / Fraction(T, levels)))


def apart(p: Model, q: Model) -> float:
    total = 0.0
    for x, y in zip(net.numbers(p), net.numbers(q), strict=True):
        total += (x - y) * (x - y)
    return sqrt(total)


def attention(a: list[float], ids: list[int], distances: list[float], alpha: float) -> list[float]:
    """Step 4."""
    mass, total = 0.0, 0.0
    for i, d in zip(ids, distances, strict=True):
        mass += a[i]
        total += d
    result = list(a)
    if total > 1e-12:
        for i, d in zip(ids, distances, strict=True):
            result[i] = alpha * a[i] + (1.0 - alpha) * (d / total) * mass
    return result


def small(method: Method, **train: Any) -> Method:
    return replace(method, train=replace(method.train, **{"steps": 3, "batch": 4, "eta": 0.2} | train))


CASES: dict[str, tuple[Method, Callable[[Hand], Base], tuple[str, str, int]]] = {
    "fedavg": (small(make.adafl()), averaged, ("0.1", "0.5", 5)),
    "fedavg, momentum, epochs": (
        small(make.adafl(alpha=0.2), steps=None, epochs=2, momentum=0.5, rate_decay=0.97),
        averaged,
        ("0.1", "0.5", 5),
    ),
    "alpha 0": (small(make.adafl(alpha=0.0, start=0.25, end=1.0, levels=4)), averaged, ("0.25", "1", 4)),
    "fedprox": (small(make.adafl(make.fedprox(lam=0.5), 0.5, 0.2, 0.6, 3)), averaged, ("0.2", "0.6", 3)),
    "scaffold": (small(make.adafl(make.scaffold(), 0.5, 0.2, 0.6, 3)), controlled, ("0.2", "0.6", 3)),
    "fedmcsa": (small(make.adafl(make.fedmcsa(lam=0.5, sigma=5.0), 0.5)), attended, ("0.1", "0.5", 5)),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(federation: Any, started: Any, case: str) -> None:
    method, build, schedule = CASES[case]
    hand = Hand(federation, method)
    play, task, state = started(method, rounds=T, chunk=3)
    heard = by_hand.listened(play)
    base, alpha = build(hand), method.select.values()["alpha"]
    a = [size / sum(hand.sizes) for size in hand.sizes]
    first = list(a)
    assert state.select["scores"].tolist() == pytest.approx(a, abs=1e-15)
    for t in range(1, T + 1):
        heard.clear()
        state, log = rounds.play(method, task, play, state)
        ids = log.selected.tolist()
        k = min(hand.n, max(1, floor(share(t, *schedule) * hand.n + Fraction(1, 2))))
        assert len(ids) == len(set(ids)) == k, f"round {t}"
        assert ids == drawn(torch.tensor(a, dtype=torch.float64), k, generator(SEED, "select", t)).tolist()
        uploads, origins = base(t, ids)
        _, _, reply = heard[0]
        assert reply.ids.tolist() == ids
        assert by_hand.farthest(reply.upload["model"], [uploads[i] for i in ids]) < CLOSE, f"round {t}"
        common = method.collaborate.model(state.collaborate)
        if common is not None:
            assert by_hand.apart(common, origins[ids[0]]) < CLOSE, f"round {t}"
        distances = [apart(origins[i], uploads[i]) for i in ids]
        a = attention(a, ids, distances, alpha)
        assert max(abs(x - y) for x, y in zip(state.select["scores"].tolist(), a, strict=True)) < CLOSE, f"round {t}"
        assert sum(a) == pytest.approx(1.0, abs=1e-12)
    assert max(abs(x - y) for x, y in zip(a, first, strict=True)) > 0.01


# alpha = 1 is Dyn-FedAvg


@dataclass(frozen=True)
class Fixed(Select):
    """The dynamic fraction with the probabilities n_i / n, written down once more."""

    def __call__(self, slot: Slot, task: Task, round: int, gen: torch.Generator) -> tuple[Tensor, Slot]:
        k = floor(
            (Fraction(1, 10) + Fraction(1, 10) * min(4, (round - 1) * 5 // task.rounds)) * task.n + Fraction(1, 2)
        )
        return drawn(task.sizes / task.sizes.sum(), k, gen), slot


def run(federation: fk.Federation, method: Method, total: int = T) -> tuple[list[int], Any]:
    result = fk.run(fk.Experiment(small(method), federation, net.network(), total, SEED, dtype="float64"))
    return [line["uploads"] for line in result.lines], result.models["global"]


def test_alpha_1_is_dyn_fedavg(federation: Any) -> None:
    counts, model = run(federation, make.dyn_fedavg())
    assert counts == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0]
    for other in (make.adafl(alpha=1.0), replace(make.fedavg(), select=Fixed())):
        again, found = run(federation, other)
        assert again == counts
        assert all(torch.equal(found[name], model[name]) for name in model)
    for other, total in ((make.adafl(alpha=0.2), T), (make.adafl(alpha=1.0), 7)):
        _, found = run(federation, other, total)
        assert any(not torch.allclose(found[name], model[name], rtol=1e-4) for name in model)


def test_attention_of_one_client_a_round_never_changes(started: Any) -> None:
    method = small(make.attn(fraction=0.1, alpha=0.3))
    play, task, state = started(method, rounds=T)
    before = state.select["scores"]
    for _ in range(6):
        state, log = rounds.play(method, task, play, state)
        assert len(log.selected) == 1
        assert torch.equal(state.select["scores"], before)


# any base method

BASES = [
    name
    for name, made in make.METHODS.items()
    if name not in ("adafl", "attn", "dyn_fedavg", "pooled")
    and made().collaborate.gives.replies
    and made().collaborate.gives.start
    and not made().train.at_hand
]


@pytest.mark.parametrize("name", BASES)
def test_any_base(federation: Any, start: Any, started: Any, name: str) -> None:
    """Only who takes part is replaced; the scores move with the distances, and stay a probability."""
    base = make.METHODS[name]()
    method = make.adafl(base, alpha=0.5, start=0.4, end=0.8, levels=2)
    assert method.name == f"adafl_{base.name}"
    assert method.select == Attention(0.5, Steps(0.4, 0.8, 2))
    assert replace(method, select=base.select, name=base.name) == base
    short = {"epochs": None, "steps": 2} if base.train.epochs is None else {"epochs": 1}
    method = replace(method, train=replace(method.train, batch=4, **short))
    play, task, state = started(method, rounds=2, dtype=torch.float32)
    heard = by_hand.listened(play)
    for t in (1, 2):
        before = state.select["scores"]
        state, log = rounds.play(method, task, play, state)
        after = state.select["scores"]
        assert len(log.selected) == 4 * t
        assert float(after.sum()) == pytest.approx(1.0, abs=1e-12)
        assert bool((after >= 0).all())
        out = ~torch.isin(torch.arange(federation.n), log.selected)
        assert torch.equal(after[out], before[out])
        sent, _, reply = heard[-1]
        common = method.collaborate.model(state.collaborate)
        origin = sent.to(reply.ids)["model"] if common is None else common
        d = torch.stack([(v - origin[k]).double().flatten(1).square().sum(1) for k, v in reply.upload["model"].items()])
        wanted = attention(before.tolist(), reply.ids.tolist(), d.sum(0).sqrt().tolist(), 0.5)
        assert after.tolist() == pytest.approx(wanted, abs=1e-7)
        assert not torch.allclose(after, before, atol=1e-4)
