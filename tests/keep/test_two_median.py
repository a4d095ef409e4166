"""The majority of scores: the larger group of the best cut in two, against brute force."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from fedkin.keep.majority import two_median


def cost(group: list[float]) -> float:
    middle = median(group)
    return sum(abs(value - middle) for value in group)


def majorities(scores: list[float]) -> list[list[bool]]:
    """What the card allows: the larger group of a best cut with the largest majority, of two groups of one size the
    lower. More than one where several such cuts are equally good."""
    n = len(scores)
    if n == 1 or min(scores) == max(scores):
        return [[True] * n]
    order = sorted(range(n), key=lambda i: scores[i])
    cuts = []
    for cut in range(1, n):
        low, high = order[:cut], order[cut:]
        total = cost([scores[i] for i in low]) + cost([scores[i] for i in high])
        cuts.append((total, max(cut, n - cut), low if cut >= n - cut else high))
    best = min(total for total, _, _ in cuts)
    largest = max(size for total, size, _ in cuts if total == best)
    return [[i in group for i in range(n)] for total, size, group in cuts if (total, size) == (best, largest)]


def kept(scores: list[float]) -> list[bool]:
    found = two_median(torch.tensor(scores, dtype=torch.float64))
    assert found.dtype == torch.bool
    return found.tolist()


def permitted(scores: list[float]) -> None:
    """The values of who is kept, as equal scores may stand for each other on either side of a cut."""
    found = [value for value, stays in zip(scores, kept(scores), strict=True) if stays]
    wanted = [sorted(value for value, stays in zip(scores, mask, strict=True) if stays) for mask in majorities(scores)]
    assert sorted(found) in wanted, scores


@given(st.lists(st.integers(0, 6).map(float), min_size=1, max_size=10))
@example([0.0, 1.0, 2.0])
@example([0.0, 1.0, 1.0, 2.0])
@example([0.0, 0.0, 5.0, 5.0, 10.0, 10.0])
def test_two_median_by_brute_force_with_ties(scores: list[float]) -> None:
    permitted(scores)


def test_two_median_by_brute_force() -> None:
    draw = np.random.default_rng(5)
    for _ in range(500):
        n = int(draw.integers(1, 11))
        scores = draw.gamma(0.7, size=n) * 10.0 ** draw.integers(-3, 4)
        assert kept(scores.tolist()) in majorities(scores.tolist())


@pytest.mark.parametrize(
    ("scores", "wanted"),
    [
        ([3.0], [True]),
        ([2.0, 2.0], [True, True]),
        ([4.0] * 5, [True] * 5),
        ([0.0] * 3, [True] * 3),
        ([9.0, 1.0], [False, True]),  # two of one size: the lower
        ([5.0, 1.0, 1.0, 5.0], [False, True, True, False]),
        ([10.0, 1.0, 11.0, 2.0], [False, True, False, True]),
        ([1.0, 8.0, 9.0, 8.5], [False, True, True, True]),  # the majority, whatever its score (A-R8)
        ([7.0, 0.0, 0.0, 0.0, 0.0], [False, True, True, True, True]),
        ([1.0, 1.1, 1.2, 50.0, 0.9], [True, True, True, False, True]),
        ([0.0, 0.0, 6.0, 10.0, 11.0], [False, False, True, True, True]),
        ([0.0, 2.0, 4.0, 8.0, 9.0], [True, True, True, False, False]),
    ],
)
def test_edges(scores: list[float], wanted: list[bool]) -> None:
    assert wanted in majorities(scores)
    assert kept(scores) == wanted


def test_of_equal_cuts_the_larger_majority() -> None:
    """Cuts after 1 and after 2 cost the same."""
    scores = [0.0, 3.0, 6.0, 6.0]
    assert cost(scores[1:]) == cost(scores[:2]) == 3.0
    assert kept(scores) == [False, True, True, True]
    assert kept([6.0 - value for value in scores]) == [False, True, True, True]


@pytest.mark.parametrize("scores", [[0.0, 1.0, 1.0, 2.0], [0.0, 0.0, 5.0, 10.0, 11.0]])
def test_of_equal_cuts_with_equal_majorities_the_lower(scores: list[float]) -> None:
    """The card leaves it open; low is good."""
    assert len(majorities(scores)) == 2
    assert kept(scores) == [i < 3 for i in range(len(scores))]


def test_many_scores() -> None:
    """Two groups far apart among thousands."""
    draw = np.random.default_rng(9)
    scores = np.concatenate([draw.normal(0, 1, 1200), draw.normal(100, 1, 1800)])
    assert kept(scores.tolist()) == [False] * 1200 + [True] * 1800
