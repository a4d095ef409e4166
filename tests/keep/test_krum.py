"""Krum and Multi-Krum: scores against loops, and whose update counts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import fedkin as fk
from fedkin.core.rng import generator
from fedkin.core.tree import Model
from fedkin.keep.krum import Krum, MultiKrum, krum_scores
from fedkin.messages import Reply, Sent
from fedkin.parts import Keep


def drawn(n: int, seed: int = 0, spread: float = 1.0, dtype: torch.dtype = torch.float64) -> Model:
    draw = np.random.default_rng(seed)
    shapes = {"w": (3, 4), "b": (4,)}
    common = {name: draw.normal(size=shape) for name, shape in shapes.items()}
    return {
        name: torch.from_numpy(common[name] + spread * draw.normal(size=(n, *shape))).to(dtype)
        for name, shape in shapes.items()
    }


def transcribed(stacked: Model, f: int) -> list[float]:
    n = len(stacked["b"])
    scores = []
    for i in range(n):
        squares = []
        for j in range(n):
            if j != i:
                square = sum(float((value[i].double() - value[j].double()).pow(2).sum()) for value in stacked.values())
                squares.append(square)
        scores.append(sum(sorted(squares)[: max(1, n - f - 2)]))
    return scores


def masked(keep: Keep, stacked: Model) -> list[float]:
    n = len(stacked["b"])
    zero = {name: torch.zeros_like(value[0]) for name, value in stacked.items()}
    task = fk.Task(n, torch.ones(n), 1, zero, lambda m, b: torch.zeros(()))
    report = {name: torch.ones(n, dtype=torch.float64) for name in ("size", "steps", "reach", "rate")}
    sent, reply = Sent(torch.arange(n), shared={"model": zero}), Reply(torch.arange(n), {"model": stacked}, report)
    mask, _ = keep(keep.init(task, generator(0, "keep")), task, sent, reply, 1, generator(0, "keep", 1))
    assert mask.shape == (n,)
    return mask.tolist()


@pytest.mark.parametrize(("n", "f"), [(9, 0), (9, 1), (9, 3), (5, 1), (7, 2), (4, 1)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_scores(n: int, f: int, dtype: torch.dtype) -> None:
    stacked = drawn(n, dtype=dtype)
    found = krum_scores(stacked, f)
    assert found.dtype == torch.float64
    assert found.tolist() == pytest.approx(transcribed(stacked, f), rel=1e-9)


@pytest.mark.parametrize(("n", "f"), [(4, 2), (4, 3), (3, 1), (2, 0), (2, 1)])
def test_too_few_for_f_leaves_the_nearest(n: int, f: int) -> None:
    assert n - f - 2 < 1
    stacked = drawn(n)
    assert krum_scores(stacked, f).tolist() == pytest.approx(transcribed(stacked, f), rel=1e-9)


@pytest.mark.parametrize("keep", [Krum(f=0), Krum(f=2), MultiKrum(f=0)])
def test_one_alone_is_kept(keep: Keep) -> None:
    assert masked(keep, drawn(1)) == [1.0]


def test_models_that_are_almost_the_same() -> None:
    """What is common to all of them is large beside what they differ by."""
    stacked = drawn(8, spread=1e-4)
    assert krum_scores(stacked, 2).tolist() == pytest.approx(transcribed(stacked, 2), rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_whose_update_counts(seed: int) -> None:
    stacked = drawn(9, seed)
    scores = transcribed(stacked, 2)
    order = sorted(range(9), key=lambda i: scores[i])
    assert masked(Krum(f=2), stacked) == [float(i == order[0]) for i in range(9)]
    assert masked(MultiKrum(f=2), stacked) == [float(i in order[:7]) for i in range(9)]


def test_outliers_are_not_kept() -> None:
    stacked = drawn(9)
    stacked["w"][[1, 6]] += 40.0
    assert [i for i, value in enumerate(masked(MultiKrum(f=2), stacked)) if not value] == [1, 6]
    assert masked(Krum(f=2), stacked)[1] == masked(Krum(f=2), stacked)[6] == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_updates_that_are_the_same(seed: int) -> None:
    """Section 5, item 5. Of ties the first."""
    one = drawn(1, seed)
    stacked = {name: value.expand(6, *value.shape[1:]).clone() for name, value in one.items()}
    assert krum_scores(stacked, 1).tolist() == pytest.approx([0.0] * 6, abs=1e-12)
    assert masked(Krum(f=1), stacked) == [1.0] + [0.0] * 5
    assert masked(MultiKrum(f=1), stacked) == [1.0] * 5 + [0.0]


def test_of_ties_the_first() -> None:
    """On a line: 8 and 2 are as near to their two nearest as each other."""
    places = torch.tensor([10.0, 8.0, 5.0, 2.0, 0.0], dtype=torch.float64)
    stacked: dict[str, Tensor] = {"w": places[:, None, None].clone(), "b": torch.zeros(5, 1, dtype=torch.float64)}
    assert krum_scores(stacked, 1).tolist() == [29.0, 13.0, 18.0, 13.0, 29.0]
    assert masked(Krum(f=1), stacked) == [0.0, 1.0, 0.0, 0.0, 0.0]
    assert masked(MultiKrum(f=1), stacked) == [1.0, 1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(("n", "share", "f"), [(9, 0.25, 2), (10, 0.2, 2), (7, 0.4, 2), (4, 0.2, 0)])
def test_a_share_of_the_replies(n: int, share: float, f: int) -> None:
    stacked = drawn(n)
    if f:
        stacked["w"][:f] += 40.0
        assert masked(MultiKrum(share), stacked) == [0.0] * f + [1.0] * (n - f)
        assert masked(Krum(share), stacked) == masked(Krum(f), stacked)
    else:
        assert masked(MultiKrum(share), stacked) == [1.0] * n
