"""Claims are judged by numbers with their spread: what holds, what holds in shape, what does not, what is open."""

from __future__ import annotations

import pytest

from fedkin.presets.claims import FAILS, HOLDS, NOT_RUN, OPEN, SHAPE, Claim, above, below, judged, near, positive, rises

A, B = ("a", "x"), ("b", "x")
CLAIM = Claim("a is above b.", above("a", "b", ["x"]))


def verdict(claim: Claim, **rows: list[float | None]) -> str:
    """The verdict of a claim on rows of one column, x."""
    return str(judged(claim, {(row, "x"): values for row, values in rows.items()})["verdict"])


def test_a_claim_holds_if_the_difference_is_beyond_its_spread() -> None:
    assert verdict(CLAIM, a=[80.0, 81.0, 82.0], b=[70.0, 71.1, 71.9]) == HOLDS
    assert verdict(CLAIM, a=[70.0, 71.1, 71.9], b=[80.0, 81.0, 82.0]) == FAILS
    assert verdict(CLAIM, a=[70.0, 80.0, 75.0], b=[69.0, 82.0, 70.0]) == SHAPE
    assert verdict(CLAIM, a=[69.0, 82.0, 70.0], b=[70.0, 80.0, 75.0]) == OPEN


def test_repetitions_are_paired() -> None:
    """Seeds differ by ten points and the rows by one: only pairs can see it."""
    assert verdict(CLAIM, a=[61.0, 71.1, 80.9], b=[60.0, 70.0, 80.0]) == HOLDS


def test_one_repetition_decides_nothing() -> None:
    assert verdict(CLAIM, a=[90.0], b=[10.0]) == SHAPE
    assert verdict(CLAIM, a=[10.0], b=[90.0]) == OPEN


def test_one_contrary_step_of_many_must_be_clear_beyond_chance() -> None:
    """A step with p = 0.03 for its contrary refutes a claim of one step, and not a claim of ten."""
    rows = {f"b{i}": [70.0, 70.5, 70.2] for i in range(9)}
    close = {"a": [80.0, 81.0, 82.0], "b9": [80.4, 81.3, 82.2]}
    one = Claim("a is above b9.", above("a", "b9", ["x"]))
    all_ten = Claim("a is above all.", above("a", [*rows, "b9"], ["x"]))
    found = judged(one, {(row, "x"): values for row, values in close.items()})
    assert 0.01 < found["steps"][0]["p_contrary"] < 0.05
    assert found["verdict"] == FAILS
    assert verdict(all_ten, **rows, **close) == OPEN


def test_a_margin_and_nearness() -> None:
    far = Claim("a is above b by 5.", above("a", "b", ["x"], 5.0))
    assert verdict(far, a=[80.0, 80.1, 80.2], b=[70.0, 70.2, 70.1]) == HOLDS
    assert verdict(far, a=[80.0, 80.1, 80.2], b=[78.0, 78.2, 78.1]) == FAILS
    alike = Claim("a and b are alike.", near(A, B, 1.0))
    assert verdict(alike, a=[80.0, 80.1, 80.2], b=[80.1, 80.0, 80.3]) == HOLDS
    assert verdict(alike, a=[80.0, 80.1, 80.2], b=[83.1, 83.0, 83.3]) == FAILS


def test_a_row_of_differences_is_above_zero() -> None:
    claim = Claim("a is above zero.", positive("a", ["x"]))
    assert verdict(claim, a=[1.0, 1.1, 0.9]) == HOLDS
    assert verdict(claim, a=[-1.0, -1.1, -0.9]) == FAILS


def test_a_row_rises_over_columns() -> None:
    claim = Claim("a rises.", rises("a", ["x", "y", "z"]))
    up = {("a", "x"): [1.0, 1.1], ("a", "y"): [2.0, 2.1], ("a", "z"): [3.0, 3.1]}
    assert judged(claim, up)["verdict"] == HOLDS
    assert judged(claim, up | {("a", "z"): [1.5, 1.6]})["verdict"] == FAILS


def test_a_target_that_was_not_reached_is_further_than_any_number_and_only_signs_count() -> None:
    cheaper = Claim("a costs less.", below("a", "b", ["x"]), missing="inf")
    assert verdict(cheaper, a=[100.0, 110.0, 105.0], b=[None, None, None]) == SHAPE, "three signs are no proof"
    assert verdict(cheaper, a=[100.0] * 5, b=[None] * 5) == HOLDS
    assert verdict(cheaper, a=[None] * 5, b=[100.0] * 5) == FAILS
    assert verdict(cheaper, a=[None, None, None], b=[100.0, 110.0, 105.0]) == OPEN
    assert verdict(cheaper, a=[None], b=[None]) == OPEN
    found = judged(cheaper, {("a", "x"): [499.0, 100.0, 100.0], ("b", "x"): [500.0, None, None]})
    assert (found["verdict"], found["steps"][0]["difference"]) == (SHAPE, None), "no mean of infinite numbers"


def test_repetitions_are_paired_by_their_numbers() -> None:
    """Seed 0 of a was not run: its seeds 1 and 2 meet those of b."""
    found = judged(CLAIM, {A: {1: 71.0, 2: 81.1}, B: {0: 60.0, 1: 70.0, 2: 80.0}})
    assert found["steps"][0]["difference"] == pytest.approx(1.05)
    assert found["steps"][0]["repetitions"] == 2


def test_what_was_not_run_is_left_out_and_counted() -> None:
    claim = Claim("a is above b and c.", above("a", ["b", "c"], ["x"]))
    found = judged(claim, {("a", "x"): [2.0, 2.1], ("b", "x"): [1.0, 1.1], ("c", "x"): []})
    assert (found["verdict"], len(found["steps"]), found["of"]) == (HOLDS, 1, 2)
    assert judged(claim, {("a", "x"): [], ("b", "x"): [1.0], ("c", "x"): []})["verdict"] == NOT_RUN


@pytest.mark.parametrize("spread", [0.0, 1e-15])
def test_equal_numbers_decide_nothing(spread: float) -> None:
    assert verdict(CLAIM, a=[80.0, 80.0 + spread, 80.0], b=[80.0, 80.0, 80.0]) == OPEN


def test_splits_of_the_same_samples_are_not_independent() -> None:
    """Thirty splits make a small difference significant, unless their overlap is counted."""
    gains = [0.5 + (-1) ** k for k in range(30)]
    claim = Claim("a is above zero.", positive("a", ["x"]))
    values = {("a", "x"): gains}
    assert judged(claim, values)["verdict"] == HOLDS
    assert judged(claim, values, overlap=0.5)["verdict"] == SHAPE
