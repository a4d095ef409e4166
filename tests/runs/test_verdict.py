"""Each method against Local: gains, and when a difference is called a win."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedkin as fk
from fedkin.methods.local import alone
from fedkin.runs.difference import holm
from fedkin.runs.verdict import effort, gain, uneven, verdict, verdicts

UP = np.linspace(0.01, 0.2, 20)  # every client gains


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ([UP], "better in this seed"),
        ([-UP], "worse in this seed"),
        ([UP[:5]], "no clear difference"),  # five clients of one seed are too few
        ([UP, UP + 0.01, UP - 0.005], "better"),
        ([-UP, -UP - 0.01, -UP + 0.005], "worse"),
        ([UP, UP + 0.1], "no clear difference"),  # two seeds that differ as much as they gain
        ([UP + 0.5, -UP, UP], "no clear difference"),  # the seeds disagree
        ([np.zeros(20)], "no clear difference"),
        ([UP * np.resize([1, -1], 20)], "no clear difference"),
    ],
)
def test_a_verdict_needs_clients_and_seeds_that_agree(gains: list[np.ndarray], expected: str) -> None:
    assert verdict(np.stack(gains))["verdict"] == expected


def test_a_verdict_has_the_direction_of_its_own_test() -> None:
    found = verdict(np.array([[-0.01] * 80 + [0.3] * 20]))  # Wilcoxon's test for worse has p = 0.004
    assert found["gain"] == pytest.approx(0.052)
    assert found["low"] > 0
    assert found["verdict"] == "better in this seed"
    assert (found["better"], found["worse"]) == (0.2, 0.8), "that most clients lose is told beside it"


def test_a_verdict_of_a_mean_that_is_not_clear_is_not_turned_round() -> None:
    found = verdict(np.array([[-0.01] * 80 + [0.06] * 20]))  # most lose, and the mean is a little above zero
    assert found["gain"] > 0
    assert found["verdict"] == "no clear difference"


def test_a_client_that_is_not_known_in_one_seed_counts_in_the_others() -> None:
    gains = np.stack([UP, UP + 0.01, UP - 0.005])
    gains[1, 3] = np.nan
    found = verdict(gains)
    assert found["clients"] == 20
    assert found["p"] < 0.05
    assert found["verdict"] == "better"
    assert found["gain"] == pytest.approx(np.mean([UP, UP + 0.01, UP - 0.005]), abs=1e-4)


def test_a_verdict_counts_clients_and_leaves_out_those_of_whom_nothing_is_known() -> None:
    gains = np.array([[0.1, -0.2, 0.0, np.nan], [0.3, 0.2, 0.0, np.nan]])
    found = verdict(gains)
    assert (found["better"], found["worse"]) == (3 / 6, 1 / 6)
    assert found["gain"] == pytest.approx((0.2 + 0.0 + 0.0) / 3)


def test_splits_of_a_seed_are_no_further_seeds() -> None:
    gains = np.stack([UP, UP + 0.01, UP - 0.005])
    assert verdict(gains, [4, 4, 4])["verdict"] == "better in this seed"


def test_verdicts_of_a_table_are_corrected_together() -> None:
    rng = np.random.default_rng(0)
    gains = {i: 0.25 * np.ones((3, 1)) + rng.normal(0, [0.1, 0.15][i > 0], (3, 1)) + np.zeros(20) for i in range(8)}
    alone, together = verdict(gains[0]), verdicts(gains, dict.fromkeys(gains, (0, 1, 2)))
    assert together[0]["p"] == alone["p"]
    assert [found["p_holm"] for found in together.values()] == holm([found["p"] for found in together.values()])
    assert all((found["verdict"] == "better") == (found["p_holm"] < 0.05) for found in together.values())


def test_a_gain_is_what_a_client_reaches_beyond_alone() -> None:
    def run(post: list[float], irrelevant: list[bool] | None = None) -> fk.Run:
        truth = {} if irrelevant is None else {"irrelevant": irrelevant}
        return fk.Run(
            known={"measured": {"accuracy": {"post": np.array(post)}}, "metric": "accuracy", "about_clients": truth}
            | {"judged": "post"}
        )

    theirs, local = [0.75, 0.5, 1.0], [0.5, 0.75, 1.0]
    np.testing.assert_array_equal(gain(run(theirs), run(local)), [0.25, -0.25, 0.0])
    np.testing.assert_array_equal(gain(run(theirs, [True, False, False]), run(local)), [np.nan, -0.25, 0.0])


def test_methods_that_train_otherwise_than_local_are_named() -> None:
    same, other = fk.methods.fedavg(), fk.methods.fedacs()
    assert uneven([fk.methods.local(), same]) == []
    assert uneven([same, other]) == [], "without Local there is nothing to compare with"
    assert uneven([fk.methods.local(), same, other, replace(alone(other), name="local@epochs=5")]) == []
    [sentence] = uneven([fk.methods.local(), same, other])
    assert sentence.startswith(f"fedacs trains {effort(other)} a round, Local {effort(same)};")
