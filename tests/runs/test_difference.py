"""A difference between two arms: its mean, interval and p, and how often it errs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedkin.errors import BadInput
from fedkin.runs.difference import difference, holm


def test_over_runs_alone_it_is_the_paired_t_test() -> None:
    a, b = np.array([0.8, 0.9, 0.7]), np.array([0.6, 0.8, 0.65])
    found, test = difference(a, b), stats.ttest_rel(a, b)
    ends = test.confidence_interval()
    assert found.mean == pytest.approx(np.mean(a - b))
    assert found.p == pytest.approx(test.pvalue)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert (found.blocks, found.clients) == (3, 1)


def test_over_the_clients_of_one_run_it_is_the_t_test_over_clients() -> None:
    gains = np.random.default_rng(0).normal(0.1, 1, (1, 30))
    assert difference(gains).p == pytest.approx(stats.ttest_1samp(gains[0], 0).pvalue)


def test_it_is_clear_only_where_it_is_so_for_other_seeds_and_for_other_clients() -> None:
    rng = np.random.default_rng(1)
    noise = 0.001 * rng.standard_normal((3, 40))
    by_seed = np.array([0.3, -0.1, 0.1])[:, None] + noise  # all clients agree, the seeds do not
    by_client = np.where(np.arange(40) < 23, 0.1, -0.1) + noise  # all seeds agree, the clients do not
    both = 0.1 + noise
    assert difference(by_seed).p > 0.3
    assert difference(by_client).p > 0.3
    assert difference(both).p < 1e-3
    for gains in (by_seed, by_client, both):
        found = difference(gains)
        assert (found.low > 0 or found.high < 0) == (found.p < 0.05)


def test_the_ends_of_the_interval_are_where_p_is_five_percent() -> None:
    gains = np.random.default_rng(2).normal(0.4, 1, (4, 9))
    found = difference(gains)
    assert difference(gains - found.low).p == pytest.approx(0.05, rel=1e-4)
    assert difference(gains - found.high).p == pytest.approx(0.05, rel=1e-4)


def test_runs_of_one_block_are_averaged_first() -> None:
    gains = np.random.default_rng(3).normal(0, 1, (6, 5))
    seeds = [0, 0, 1, 1, 2, 2]
    assert difference(gains, blocks=seeds) == difference(gains.reshape(3, 2, 5).mean(1))
    assert difference(gains, blocks=[7] * 6).blocks == 1


def test_a_client_that_is_not_known_in_one_run_stays_with_what_is_known_of_it() -> None:
    gains = np.array([[0.1, 0.2, 0.3, 0.2], [0.2, 0.3, np.nan, 0.3], [0.1, 0.2, 0.3, np.nan]])
    found = difference(gains)
    assert found.clients == 4
    assert found.mean == pytest.approx(np.mean([[0.1, 0.2, 0.3, 0.2], [0.2, 0.3, 0.4, 0.3], [0.1, 0.2, 0.3, 0.2]]))
    assert found.p < 0.05
    nowhere = difference(np.c_[gains, [np.nan] * 3])
    assert nowhere == found, "a client of whom nothing is known is left out"


@pytest.mark.parametrize(
    "gains", [np.full((2, 3), np.nan), np.zeros((3, 4)), np.array([[0.5]])], ids=["nothing known", "no gain", "one"]
)
def test_where_nothing_can_be_said_p_is_one(gains: np.ndarray) -> None:
    assert difference(gains).p == 1.0


def test_ends_that_are_not_known_are_none_in_json() -> None:
    found = difference(np.array([[0.5]])).as_json()
    assert found == {"mean": 0.5, "low": None, "high": None, "p": 1.0, "blocks": 1, "clients": 1}


def test_each_run_has_one_block() -> None:
    with pytest.raises(BadInput, match="2 blocks for 3 runs"):
        difference(np.zeros((3, 2)), blocks=[0, 1])


def test_holm_corrects_the_smallest_most_and_keeps_the_order() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.5, float("nan"), 0.9]) == pytest.approx([1.0, 1.0, 1.0])
    assert holm([]) == []


@pytest.mark.parametrize(("of_seed", "of_client"), [(0, 0), (0.2, 0), (1, 0), (0, 1), (0.2, 1), (1, 1)])
def test_without_any_difference_it_errs_in_at_most_five_percent(of_seed: float, of_client: float) -> None:
    rng, tables = np.random.default_rng(4), 600
    wrong = 0
    for _ in range(tables):
        gains = rng.standard_normal((3, 20)) + of_seed * rng.standard_normal((3, 1))
        wrong += difference(gains + of_client * rng.standard_normal(20)).p < 0.05
    assert wrong / tables <= 0.05 + 2 * (0.05 * 0.95 / tables) ** 0.5
