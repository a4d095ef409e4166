"""SAMPLE_P against the exact law of successive draws without replacement."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from scipy import stats

from fedkin.select.draw import drawn

DRAWS = 4_000


def law(p: list[float], k: int) -> dict[tuple[int, ...], float]:
    """The chance of every set of k: over all orders, p_i over what is left, draw by draw."""
    found: dict[tuple[int, ...], float] = {}
    for order in permutations(range(len(p)), k):
        chance, left = 1.0, sum(p)
        for i in order:
            chance *= p[i] / left
            left -= p[i]
        key = tuple(sorted(order))
        found[key] = found.get(key, 0.0) + chance
    return found


def counted(p: list[float], k: int, seed: int = 0, draws: int = DRAWS) -> Counter[tuple[int, ...]]:
    gen, weights = torch.Generator().manual_seed(seed), torch.tensor(p, dtype=torch.float64)
    return Counter(tuple(drawn(weights, k, gen).tolist()) for _ in range(draws))


CASES = [
    ([0.5, 0.3, 0.15, 0.05], 1),
    ([0.5, 0.3, 0.15, 0.05], 2),
    ([0.5, 0.3, 0.15, 0.05], 3),
    ([0.2, 0.2, 0.2, 0.2, 0.2], 2),
    ([0.9, 0.04, 0.03, 0.02, 0.01], 3),
    ([7.0, 1.0, 2.0, 5.0, 3.0], 4),  # not normalised
]


@pytest.mark.parametrize(("p", "k"), CASES)
def test_the_law_of_successive_draws(p: list[float], k: int) -> None:
    wanted, found = law(p, k), counted(p, k)
    assert sum(wanted.values()) == pytest.approx(1.0)
    assert set(found) <= set(wanted)
    sets = list(wanted)
    result = stats.chisquare([found[s] for s in sets], [DRAWS * wanted[s] for s in sets])
    assert result.pvalue > 1e-3


@pytest.mark.parametrize(("p", "k"), CASES[:3])
def test_inclusion_probabilities(p: list[float], k: int) -> None:
    wanted, found = law(p, k), counted(p, k, seed=1)
    for i in range(len(p)):
        exact = sum(chance for s, chance in wanted.items() if i in s)
        seen = sum(times for s, times in found.items() if i in s)
        assert stats.binomtest(seen, DRAWS, min(exact, 1.0)).pvalue > 1e-3


def test_the_law_is_not_that_of_k_times_p() -> None:
    """A-D1: the check above would notice; and drawing uniformly is far off too."""
    p, found = [0.5, 0.3, 0.15, 0.05], counted([0.5, 0.3, 0.15, 0.05], 2)
    for i in range(4):
        seen = sum(times for s, times in found.items() if i in s)
        assert stats.binomtest(seen, DRAWS, min(1.0, 2 * p[i])).pvalue < 1e-6
        assert stats.binomtest(seen, DRAWS, 0.5).pvalue < 1e-6


def test_fewer_positive_than_wanted() -> None:
    """All of them, and the rest uniformly from the others."""
    p, k = [0.0, 0.7, 0.0, 0.3, 0.0, 0.0], 4
    found = counted(p, k, draws=3000)
    sets = [tuple(sorted((1, 3, *rest))) for rest in combinations((0, 2, 4, 5), 2)]
    assert set(found) == set(sets)
    assert stats.chisquare([found[s] for s in sets]).pvalue > 1e-3


@pytest.mark.parametrize("tiny", [1e-300, 5e-324])
def test_the_smallest_chance_is_still_more_than_none(tiny: float) -> None:
    assert set(counted([0.0, tiny, 0.0, 1.0], 2, draws=300)) == {(1, 3)}


def test_no_chance_at_all_is_uniform() -> None:
    found = counted([0.0] * 4, 2, draws=3000)
    assert len(found) == 6
    assert stats.chisquare(list(found.values())).pvalue > 1e-3


def test_zero_is_left_out_while_others_are_left() -> None:
    assert set(counted([0.0, 0.5, 0.0, 0.5, 1e-3], 3, draws=500)) == {(1, 3, 4)}


@pytest.mark.parametrize("same", [0.0, 0.5, 1.0 - 2.0**-53])
def test_ties_go_to_the_lower_id(monkeypatch: pytest.MonkeyPatch, same: float) -> None:
    """With the same noise for all, also the ends of what a generator gives, the larger chance and then the lower id."""
    monkeypatch.setattr(torch, "rand", lambda n, **_: torch.full((n,), same, dtype=torch.float64))
    gen: Any = None
    assert drawn(torch.tensor([0.1, 0.2, 0.2, 0.1, 0.4]), 2, gen).tolist() == [1, 4]
    assert drawn(torch.full((50,), 0.02), 7, gen).tolist() == list(range(7))
    assert drawn(torch.tensor([0.0, 0.5, 0.0, 0.5, 0.0]), 4, gen).tolist() == [0, 1, 2, 3]


@given(some.lists(some.floats(0, 1), min_size=1, max_size=12), some.integers(1, 14), some.integers(0, 2**31))
def test_distinct_ascending_and_as_many_as_asked(p: list[float], k: int, seed: int) -> None:
    ids = drawn(torch.tensor(p, dtype=torch.float64), k, torch.Generator().manual_seed(seed)).tolist()
    assert ids == sorted(set(ids))
    assert len(ids) == min(k, len(p))
    assert all(0 <= i < len(p) for i in ids)
    if 0 < sum(value > 0 for value in p) <= k:
        assert {i for i, value in enumerate(p) if value > 0} <= set(ids)


def test_the_same_generator_draws_the_same() -> None:
    p = torch.rand(100, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    one, two, other = (drawn(p, 10, torch.Generator().manual_seed(seed)).tolist() for seed in (5, 5, 6))
    assert one == two != other
    assert drawn(1000 * p, 10, torch.Generator().manual_seed(5)).tolist() == one
