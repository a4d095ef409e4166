"""Each method against Local: gains, and when a difference is called a win."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedkin as fk
from fedkin.methods.local import alone
from fedkin.runs.verdict import effort, gain, uneven, verdict

UP = np.linspace(0.01, 0.2, 20)  # every client gains


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ([UP], "better"),
        ([-UP], "worse"),
        ([UP, UP + 0.1], "better"),
        ([UP + 0.5, -UP], "no clear difference"),  # the mean over seeds is far above zero, but the seeds disagree
        ([np.zeros(20)], "no clear difference"),
        ([UP * np.resize([1, -1], 20)], "no clear difference"),
    ],
)
def test_a_verdict_needs_a_test_and_the_same_sign_in_every_seed(gains: list[np.ndarray], expected: str) -> None:
    assert verdict(np.stack(gains))["verdict"] == expected


def test_a_verdict_counts_clients_and_leaves_out_those_of_whom_nothing_is_known() -> None:
    gains = np.array([[0.1, -0.2, 0.0, np.nan], [0.3, 0.2, 0.0, np.nan]])
    found = verdict(gains)
    assert (found["better"], found["worse"]) == (3 / 6, 1 / 6)
    assert found["gain"] == pytest.approx((0.2 + 0.0 + 0.0) / 3)


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
