"""Numbers for pairs of clients in blocks, their quantile, and sketches of models with their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fedkin.core import geometry, tree
from fedkin.core.geometry import Pairs, pairs, quantile, sketches
from fedkin.core.tree import Model

M = 23
SHAPES = {"1.weight": (3, 4), "1.bias": (3,), "3.weight": (2, 3), "3.bias": (2,)}


def drawn(m: int = M, seed: int = 0, shapes: dict[str, tuple[int, ...]] | None = None) -> Model:
    gen = torch.Generator().manual_seed(seed)
    return {name: torch.randn(m, *shape, generator=gen).double() for name, shape in (shapes or SHAPES).items()}


# the quantile


def square(values: np.ndarray) -> Pairs:
    held = torch.from_numpy(values)
    return Pairs({}, [], "cosine", None, torch.ones(len(held)), held)


@pytest.mark.parametrize("sample", [1, 30, 5000])
@pytest.mark.parametrize("kind", ["spread", "tied", "equal", "skewed"])
def test_the_quantile_in_blocks_is_numpys(kind: str, sample: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the sample says: of one permutation it often says something wrong."""
    gen = np.random.default_rng(0)
    values = {
        "spread": gen.normal(size=(31, 31)),
        "tied": gen.integers(0, 4, (31, 31)).astype(float),
        "equal": np.full((31, 31), 0.7),
        "skewed": np.where(gen.random((31, 31)) < 0.01, gen.random((31, 31)), 1 - 1e-9 * gen.random((31, 31))),
    }[kind]
    monkeypatch.setattr(geometry, "BLOCK", 100)
    monkeypatch.setattr(geometry, "SAMPLE", sample)
    for level in (0.0, 1e-4, 0.1, 0.25, 0.5, 0.77, 0.9, 0.999, 1.0):
        assert quantile(square(values), level) == np.quantile(values, level)


@pytest.mark.parametrize("kind", ["cosine", "distance"])
def test_pairs_that_are_not_held_are_the_same(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geometry, "BLOCK", 70)
    stack, names = drawn(), list(SHAPES)
    held, computed = (pairs(stack, names, kind, tree.row(drawn(1, 9), 0), hold) for hold in (True, False))
    assert held.held is not None
    assert computed.held is None
    for at in held.blocks():
        torch.testing.assert_close(computed.rows(at), held.rows(at), rtol=1e-12, atol=1e-12)
    order = torch.randperm(M, generator=torch.Generator().manual_seed(0))
    order[3] = 3
    torch.testing.assert_close(computed.along(order), held.along(order), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(held.along(order), held.held[torch.arange(M), order])


# sketches


def many_sketches(stack: Model, k: int, times: int) -> Tensor:
    """The sketches of all rows by different projections."""  # (times, m, k)
    gens = [torch.Generator().manual_seed(seed) for seed in range(times)]
    return torch.stack([sketches([stack], list(stack), k, gen)[0] for gen in gens])


@pytest.mark.parametrize("k", [4, 32])
def test_products_and_distances_of_sketches_are_as_wrong_as_promised(k: int) -> None:
    """Means and variances over 4,000 projections, against the formulas; and the share beyond 1 +- eps."""
    times, stack = 4000, {"w": torch.tensor([[3.0, 0, 0, 4, 0], [3, 4, 0, 0, 0], [0, 0, 0.1, 0, 0]]).double()}
    rows, found = stack["w"], many_sketches(stack, k, times)
    lengths = rows.norm(dim=1)
    for i, j in ((0, 1), (0, 2), (1, 1)):
        products, exact = (found[:, i] * found[:, j]).sum(1), float(rows[i] @ rows[j])
        cosine = exact / float(lengths[i] * lengths[j])
        spread = ((1 + cosine**2) / k) ** 0.5 * float(lengths[i] * lengths[j])
        assert float(products.mean()) == pytest.approx(exact, abs=4 * spread / times**0.5)
        assert float(products.std()) == pytest.approx(spread, rel=0.1)
    ratios = (found[:, 0] - found[:, 1]).square().sum(1) / (rows[0] - rows[1]).square().sum()
    assert float(ratios.mean()) == pytest.approx(1.0, abs=4 * (2 / k / times) ** 0.5)
    assert float(ratios.std()) == pytest.approx((2 / k) ** 0.5, rel=0.1)
    for eps in (0.3, 0.6, 0.9):
        beyond = float(((ratios - 1).abs() > eps).double().mean())
        assert beyond <= 2 * np.exp(-k * (eps**2 / 4 - eps**3 / 6)) + 0.01


@pytest.mark.parametrize("cosine", [0.0, 0.6, 0.99])
def test_cosines_of_sketches_are_as_wrong_as_promised(cosine: float) -> None:
    k, other = 100, [cosine, (1 - cosine**2) ** 0.5]
    found = many_sketches({"w": torch.tensor([[1.0, 0.0], other]).double()}, k, 2000)
    cosines = torch.cosine_similarity(found[:, 0], found[:, 1], dim=1)
    assert float(cosines.std()) == pytest.approx((1 - cosine**2) / k**0.5, rel=0.1)
    assert float(cosines.mean()) == pytest.approx(cosine, abs=0.01)


def test_a_clients_sketch_does_not_depend_on_its_company() -> None:
    stack = drawn(shapes={"w": (700, 3)})
    alone, together = (
        sketches([rows], ["w"], 5, torch.Generator().manual_seed(1))[0]
        for rows in (tree.rows(stack, slice(4, 5)), stack)
    )
    torch.testing.assert_close(alone[0], together[4])
    assert stack["w"][0].numel() > geometry.CHUNK, "more than is drawn at a time"
    halves = [
        sketches([{"w": part}], ["w"], 5, torch.Generator().manual_seed(1))[0]
        for part in (stack["w"][:, :100], stack["w"][:, 500:600])
    ]
    assert not torch.allclose(*halves)
