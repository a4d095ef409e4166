"""The coordinate-wise median and trimmed mean of what was uploaded and kept."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import numpy as np
import pytest
import torch

import fedkin as fk
from fedkin.collaborate import Mean
from fedkin.collaborate.median import Median
from fedkin.collaborate.trimmed_mean import TrimmedMean
from fedkin.core.tree import Model
from fedkin.messages import Reply
from fedkin.parts import Collaborate

SHAPES = {"w": (3, 4), "b": (4,)}
FIRST = {name: torch.full(shape, 7.0, dtype=torch.float64) for name, shape in SHAPES.items()}


def drawn(n: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Model:
    draw = np.random.default_rng(seed)
    return {name: torch.from_numpy(draw.standard_t(2, size=(n, *shape))).to(dtype) for name, shape in SHAPES.items()}


def received(part: Collaborate, stacked: Model, kept: list[float] | None = None) -> Model:
    """The common model after these uploads; clients have very different sizes."""
    n = len(stacked["b"])
    sizes = torch.arange(1, n + 1).double() ** 3
    task = fk.Task(
        n, sizes.long(), 1, {k: v.to(stacked["b"].dtype) for k, v in FIRST.items()}, lambda m, b: sizes.sum()
    )
    slot = part.init(task)
    sent, slot = part.send(slot, task, torch.arange(n), None)
    assert set(sent.shared) == {"model"}
    assert not sent.own
    for name, value in FIRST.items():
        assert torch.equal(sent.shared["model"][name].double(), value)
    report = {
        "size": sizes,
        "steps": torch.ones(n).double(),
        "reach": torch.ones(n).double(),
        "rate": torch.ones(n).double(),
    }
    reply = Reply(torch.arange(n), {"model": stacked}, report)
    mask = torch.ones(n, dtype=torch.float64) if kept is None else torch.tensor(kept, dtype=torch.float64)
    model = part.model(part.receive(slot, task, sent, reply, mask))
    assert model is not None
    assert {value.dtype for value in model.values()} == {stacked["b"].dtype}
    return model


def by_number(stacked: Model, one: Callable[[list[float]], float]) -> Model:
    """`one` of the sorted values of every coordinate."""
    result = {}
    for name, value in stacked.items():
        columns = value.double().reshape(len(value), -1).T.tolist()
        found = torch.tensor([one(sorted(column)) for column in columns], dtype=torch.float64)
        result[name] = found.reshape(value.shape[1:])
    return result


def trimmed(values: list[float], cut: int) -> float:
    rest = values[cut : len(values) - cut]
    return sum(rest) / len(rest)


def same(found: Model, wanted: Model, atol: float = 1e-12) -> None:
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        assert found[name].shape == value.shape
        assert float((found[name].double() - value.double()).abs().max()) < atol


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 10])
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_median(n: int, dtype: torch.dtype, atol: float) -> None:
    stacked = drawn(n, dtype=dtype)
    same(received(Median(), stacked), by_number(stacked, median), atol)


def test_of_an_even_number_the_mean_of_the_two_in_the_middle() -> None:
    b = torch.tensor([[1.0] * 4, [9.0] * 4, [100.0] * 4, [2.0] * 4], dtype=torch.float64)
    stacked = {"w": torch.zeros(4, 3, 4, dtype=torch.float64), "b": b}
    assert received(Median(), stacked)["b"].tolist() == [5.5] * 4


@pytest.mark.parametrize(
    ("n", "trim", "cut"),
    [(10, 0.1, 1), (9, 0.1, 0), (10, 0.25, 2), (11, 0.3, 3), (7, 0.4, 2), (5, 0.39, 1), (20, 0.45, 9), (100, 0.29, 29)],
)
def test_trimmed_mean(n: int, trim: float, cut: int) -> None:
    """floor(trim n) largest and as many smallest are dropped; 0.29 of 100 are 29."""
    stacked = drawn(n)
    same(received(TrimmedMean(trim), stacked), by_number(stacked, lambda values: trimmed(values, cut)))


@pytest.mark.parametrize("n", [1, 2, 7])
def test_nothing_trimmed_is_the_uniform_mean(n: int) -> None:
    """Section 5, item 5."""
    stacked = drawn(n)
    found = received(TrimmedMean(trim=0.0), stacked)
    same(found, received(Mean(weights="uniform"), stacked))
    same(found, {name: value.mean(0) for name, value in stacked.items()})


@pytest.mark.parametrize(("n", "trim"), [(1, 0.49), (3, 0.4), (5, 0.4), (4, 0.49), (8, 0.49)])
def test_all_trimmed_but_the_middle_is_the_median(n: int, trim: float) -> None:
    stacked = drawn(n)
    same(received(TrimmedMean(trim), stacked), received(Median(), stacked))


@pytest.mark.parametrize("part", [Median(), TrimmedMean(0.3), TrimmedMean(0.0)])
def test_who_does_not_count_is_left_out(part: Collaborate) -> None:
    stacked, mask = drawn(9), [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    at = torch.tensor(mask).bool()
    same(received(part, stacked, mask), received(part, {name: value[at] for name, value in stacked.items()}))
    far = {name: value.clone() for name, value in stacked.items()}
    far["w"][4] = 1e6
    same(received(part, far, mask), received(part, stacked, mask))


@pytest.mark.parametrize("part", [Median(), TrimmedMean(0.3)])
def test_with_nobody_left_the_old_model_stays(part: Collaborate) -> None:
    same(received(part, drawn(3), [0.0] * 3), FIRST)


@pytest.mark.parametrize("part", [Median(), TrimmedMean(0.3)])
def test_a_few_cannot_move_it_far(part: Collaborate) -> None:
    stacked = drawn(10)
    far = {name: value.clone() for name, value in stacked.items()}
    for value in far.values():
        value[[2, 5, 8]] = 1e9
    moved = received(part, far)
    for name, value in stacked.items():
        assert bool((moved[name] <= value.amax(0)).all())
        assert bool((moved[name] >= value.amin(0)).all())
