"""FedAMP and HeurFedAMP against cards 2.9 and 2.10: messages by scalars and loops, in float64."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import exp
from typing import Any

import hand_network as net
import pytest
import torch
import transcribed as by_hand
from hand_network import COMPONENTS, Model
from small import tiny
from transcribed import Mix

import fedkin as fk
from fedkin.collaborate import HeuristicMessagePassing, MessagePassing
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Prox

TRAIN, TEST = (2, 3, 7, 11, 25), (3, 0, 5, 9, 4)
WHOLE = COMPONENTS["model"]["model"]
SMALL = Prox(eta=0.2, steps=3, batch=4, lam=0.8)


def passed(
    models: list[Model],
    alpha: float,
    sigma: float,
    kept: list[float] | None = None,
    names: tuple[str, ...] = WHOLE,
) -> list[list[float]]:
    """xi of card 2.9, of the tensors with these names; where a row's own weight would be negative it is 0 and the rest
    is rescaled. A source that counts for less sends less, and its receiver keeps the more of its own."""
    vectors = [net.numbers(model, names) for model in models]
    rows = []
    for i in range(len(models)):
        row, others = [0.0] * len(models), 0.0
        for j in range(len(models)):
            if j != i:
                x = sum((p - q) ** 2 for p, q in zip(vectors[i], vectors[j], strict=True))
                row[j] = alpha * exp(-x / sigma) / sigma * (kept[j] if kept else 1.0)
                others += row[j]
        row[i] = 1.0 - others
        if row[i] < 0.0:
            row = [0.0 if j == i else row[j] / others for j in range(len(models))]
        rows.append(row)
    return rows


def heuristic(
    models: list[Model],
    self_weight: float,
    sigma: float,
    kept: list[float] | None = None,
    names: tuple[str, ...] = WHOLE,
) -> list[list[float]]:
    """xi of card 2.10, of the tensors with these names; a single participant, or one whose others do not count, keeps
    its model."""
    vectors = [net.numbers(model, names) for model in models]
    rows = []
    for i in range(len(models)):
        row = [0.0] * len(models)
        for j in range(len(models)):
            if j != i:
                row[j] = exp(sigma * net.cosine(vectors[i], vectors[j]) - sigma) * (kept[j] if kept else 1.0)
        total = sum(row)
        if total > 0.0:
            row = [(1.0 - self_weight) * value / total for value in row]
        row[i] = self_weight if total > 0.0 else 1.0
        rows.append(row)
    return rows


def apart(xi: Any, granularity: str) -> Mix:
    """Every component of u_i by its own weights."""

    def mix(models: list[Model], sizes: list[float]) -> list[Model]:
        mixed: list[Model] = [{} for _ in models]
        for names in COMPONENTS[granularity].values():
            for i, whole in enumerate(by_hand.blended(xi(models, names=names), models)):
                mixed[i] |= {name: whole[name] for name in names}
        return mixed

    return mix


def messages(alpha: float, sigma: float, granularity: str = "model") -> Mix:
    return apart(partial(passed, alpha=alpha, sigma=sigma), granularity)


def guesses(self_weight: float, sigma: float, granularity: str = "model") -> Mix:
    return apart(partial(heuristic, self_weight=self_weight, sigma=sigma), granularity)


def composed(collaborate: Any, train: Any = SMALL, trains: str = "selected", count: int = 3) -> Method:
    return Method("tried", Uniform(count=count), train, Everyone(), collaborate, trains=trains)  # type: ignore[arg-type]


EPOCHS = replace(SMALL, steps=None, epochs=2)
CASES: dict[str, tuple[Method, Mix]] = {
    "never clipped": (composed(MessagePassing(1.0, 20.0)), messages(1.0, 20.0)),
    "clipped": (composed(MessagePassing(30.0, 20.0), count=4), messages(30.0, 20.0)),
    "clipped at first": (composed(MessagePassing(0.7, 0.5), EPOCHS, count=4), messages(0.7, 0.5)),
    "small sigma": (composed(MessagePassing(1.0, 1e-3), EPOCHS), messages(1.0, 1e-3)),
    "everyone": (composed(MessagePassing(1.0, 3.0), trains="everyone"), messages(1.0, 3.0)),
    "all, epochs": (composed(MessagePassing(1.0, 8.0), EPOCHS, count=5), messages(1.0, 8.0)),
    "heuristic": (composed(HeuristicMessagePassing(0.1, 50.0), trains="everyone"), guesses(0.1, 50.0)),
    "heuristic, half, epochs": (composed(HeuristicMessagePassing(0.5, 5.0), EPOCHS), guesses(0.5, 5.0)),
    "heuristic, alone": (composed(HeuristicMessagePassing(0.1, 5.0), count=1), guesses(0.1, 5.0)),
    "heuristic, large sigma": (composed(HeuristicMessagePassing(0.3, 900.0), count=4), guesses(0.3, 900.0)),
    "layers": (composed(MessagePassing(0.7, 0.5, "layer"), EPOCHS, count=4), messages(0.7, 0.5, "layer")),
    "tensors": (composed(MessagePassing(1.0, 3.0, "tensor"), trains="everyone"), messages(1.0, 3.0, "tensor")),
    "heuristic, layers": (composed(HeuristicMessagePassing(0.2, 20.0, "layer")), guesses(0.2, 20.0, "layer")),
    "heuristic, tensors": (composed(HeuristicMessagePassing(0.2, 9.0, "tensor"), EPOCHS), guesses(0.2, 9.0, "tensor")),
    "heuristic, nothing of its own": (composed(HeuristicMessagePassing(0.0, 9.0)), guesses(0.0, 9.0)),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(checked: Any, case: str) -> None:
    method, mix = CASES[case]
    checked(method, lambda hand: by_hand.mixed_then_pulled(hand, mix))


def test_components_have_weights_of_their_own() -> None:
    """Not those of the whole model, and others for each component."""
    models, everyone = by_hand.drawn(4), torch.ones(4, dtype=torch.float64)
    for part in (MessagePassing(1.0, 4.0, "tensor"), HeuristicMessagePassing(0.1, 9.0, "tensor")):
        found = part.weights(by_hand.stack(models), everyone)
        assert set(found) == set(COMPONENTS["tensor"])
        whole = replace(part, granularity="model").weights(by_hand.stack(models), everyone)["model"]
        each = [whole, *found.values()]
        assert all(not torch.allclose(p, q, atol=1e-3) for k, p in enumerate(each) for q in each[:k])


@pytest.mark.parametrize("granularity", COMPONENTS)
def test_named_methods_by_component(checked: Any, granularity: Any) -> None:
    amp = fk.methods.fedamp(sigma=3.0, granularity=granularity)
    heuristic = fk.methods.heurfedamp(granularity=granularity)
    for method, mix in ((amp, messages(1.0, 3.0, granularity)), (heuristic, guesses(0.1, 50.0, granularity))):
        checked(tiny(method), lambda hand, mix=mix: by_hand.mixed_then_pulled(hand, mix))


@pytest.mark.parametrize(("alpha", "sigma", "lam"), [(1.0, 1.0, 1.0), (0.5, 9.0, 1.0), (4.0, 7.0, 2.0)])
def test_fedamp(checked: Any, alpha: float, sigma: float, lam: float) -> None:
    method = tiny(fk.methods.fedamp(alpha=alpha, sigma=sigma, lam=lam))
    assert method.collaborate == MessagePassing(alpha, sigma)
    assert isinstance(method.train, Prox)
    assert (method.train.lam, method.train.start) == (lam / alpha, "sent")
    mix = messages(alpha, sigma)
    checked(method, lambda hand: by_hand.mixed_then_pulled(hand, mix), again=True)


@pytest.mark.parametrize("trains", ["everyone", "selected"])
def test_heurfedamp(checked: Any, trains: Any) -> None:
    method = tiny(fk.methods.heurfedamp(trains=trains))
    assert method.collaborate == HeuristicMessagePassing(0.1, 50.0)
    assert isinstance(method.train, Prox)
    assert (method.train.lam, method.train.start, method.trains) == (5.0, "sent", trains)
    mix = guesses(0.1, 50.0)
    checked(method, lambda hand: by_hand.mixed_then_pulled(hand, mix), again=True)


def test_the_cases_are_clipped_and_not() -> None:
    """At equal models, as in round 1, and at models far apart."""
    near, far = by_hand.drawn(4, spread=0.0), by_hand.drawn(4, spread=0.5)
    assert passed(near, 30.0, 20.0)[0][0] == 0.0
    assert passed(near, 1.0, 20.0)[0][0] == pytest.approx(0.85)
    assert passed(near, 0.7, 0.5)[0][0] == 0.0
    assert passed(far, 0.7, 0.5)[0][0] > 0.9


# the pure functions

KEPT = {"all": [1.0] * 5, "some": [1.0, 0.0, 0.5, 1.0, 0.25], "one": [0.0, 0.0, 1.0, 0.0, 0.0], "none": [0.0] * 5}


def pure(part: Any, models: list[Model], rows: list[list[float]], kept: list[float]) -> None:
    k = torch.tensor(kept, dtype=torch.float64)
    found = part.weights(by_hand.stack(models), k)
    assert set(found) == {"model"}
    by_hand.same(found["model"], rows)
    assert by_hand.farthest(part.mix(by_hand.stack(models), k), by_hand.blended(rows, models)) < 1e-10


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize(("alpha", "sigma"), [(1.0, 40.0), (1.0, 4.0), (60.0, 40.0), (1.0, 0.01)])
def test_weights_and_mix(alpha: float, sigma: float, kept: str) -> None:
    models = by_hand.drawn(5)
    pure(MessagePassing(alpha, sigma), models, passed(models, alpha, sigma, KEPT[kept]), KEPT[kept])


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize(("self_weight", "sigma"), [(0.1, 50.0), (0.5, 2.0), (0.0, 9.0), (1.0, 9.0), (0.3, 900.0)])
def test_heuristic_weights_and_mix(self_weight: float, sigma: float, kept: str) -> None:
    models = by_hand.drawn(5)
    rows = heuristic(models, self_weight, sigma, KEPT[kept])
    pure(HeuristicMessagePassing(self_weight, sigma), models, rows, KEPT[kept])
