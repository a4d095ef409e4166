"""The rule that makes a verdict of a gain, its interval and the number of test rows."""

from __future__ import annotations

import pytest

from fedkin.answers.bootstrap import Gain
from fedkin.answers.site import best_of, decided, verdict_on

SURE, MAYBE, LOSS, WIDE = (
    Gain(0.07, 0.02, 0.12),
    Gain(0.03, -0.02, 0.08),
    Gain(-0.05, -0.09, -0.01),
    Gain(0.1, -0.2, 0.4),
)


@pytest.mark.parametrize(
    ("gain", "rows", "expected"),
    [
        (SURE, 63, "join"),
        (SURE, 9, "too few test rows to tell"),
        (MAYBE, 63, "no clear difference"),
        (LOSS, 63, "stay alone"),
        (Gain(-0.01, -0.03, 0.01), 63, "stay alone"),
        (Gain(0.0, -0.05, 0.05), 63, "no clear difference"),
        (WIDE, 40, "too few test rows to tell"),
        (Gain(0.3, 0.1, 0.5), 20, "join"),
        (None, 63, "too few test rows to tell"),
    ],
)
def test_a_verdict(gain: Gain | None, rows: int, expected: str) -> None:
    assert verdict_on(gain, rows) == expected


def test_a_wide_interval_of_a_plain_number_is_unclear() -> None:
    assert verdict_on(WIDE, 40, percent=False) == "no clear difference"


def test_of_the_methods_that_surely_help_the_one_that_reaches_most_is_best() -> None:
    gains = {"weak": Gain(0.2, 0.1, 0.3), "strong": SURE, "lucky": Gain(0.3, -0.1, 0.7)}
    assert best_of(gains, {"weak": 0.7, "strong": 0.9, "lucky": 0.95}) == "strong"
    assert best_of({"a": MAYBE, "b": WIDE}, {"a": 0.9, "b": 0.1}) == "b"


def test_an_answer_says_when_more_steps_alone_reach_more() -> None:
    against = {"fedavg": "local", "fedacs": "local@epochs=5"}
    reached = {"fedavg": 0.8, "fedacs": 0.7, "local": 0.73, "local@epochs=5": 0.85}
    found = decided("A", 63, {"fedavg": SURE, "fedacs": LOSS}, reached, against, True)
    assert (found.verdict, found.method, found.against) == ("join", "fedavg", "local")
    assert found.better_alone == "local@epochs=5"
    assert decided("A", 63, {"fedavg": SURE}, reached | {"fedavg": 0.9}, against, True).better_alone is None


def test_a_site_of_which_nothing_is_known_has_too_few_rows() -> None:
    assert decided("A", 0, {}, {}, {"fedavg": "local"}, True).verdict == "too few test rows to tell"


def test_rows_of_the_rarer_classes_must_be_enough_where_they_decide() -> None:
    gains, against, reached = {"fedavg": SURE}, {"fedavg": "local"}, {"fedavg": 0.9, "local": 0.8}
    assert decided("A", 75, gains, reached, against, True, rarer=1).verdict == "too few test rows to tell"
    assert decided("A", 75, gains, reached, against, True, rarer=30).verdict == "join"
