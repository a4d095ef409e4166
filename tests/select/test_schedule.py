"""How many take part: rounding, schedules, and the costs printed in AdaFL's tables."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

import fedkin as fk
from fedkin.errors import BadInput
from fedkin.select import Attention, Constant, Listed, Steps
from fedkin.select.schedule import Schedule, cost, scheduled, whole

PAPER = Steps(0.1, 0.5, 5)


@pytest.mark.parametrize(
    ("rounds", "until", "wanted"),
    [
        (1000, 423, 6690),
        (1000, 761, 18440),
        (1000, 683, 15320),
        (1000, 721, 16840),
        (1000, 852, 22600),
        (1000, 698, 15920),
        (1000, 794, 19760),
        (1500, 951, 20040),
        (1500, 1485, 44250),
        (1500, 1103, 26120),
    ],
)
def test_printed_costs(rounds: int, until: int, wanted: int) -> None:
    """Tables 2 and 4, both ends included (A-D4)."""
    assert cost(PAPER, 100, rounds, until) == wanted


def test_a_constant_costs_the_same_in_every_round() -> None:
    assert cost(Constant(0.1), 100, 1000, 635) == 6350
    assert cost(Constant(0.5), 100, 1000, 635) == 31750  # A-D5: printed with two digits swapped
    assert cost(PAPER, 100, 1000, 0) == 0


@pytest.mark.parametrize(
    ("fraction", "n", "wanted"),
    [
        (0.29, 100, 29),  # 28.999999999999996
        (0.57, 100, 57),  # 56.99999999999999
        (0.145, 100, 15),  # half up, though 14.499999999999998
        (0.285, 100, 29),  # 28.499999999999996
        (0.25, 10, 3),
        (0.35, 10, 4),
        (0.249, 10, 2),
        (1e-9, 10, 1),
        (0.04, 10, 1),
        (1.0, 7, 7),
        (0.99, 7, 7),
        (0.01, 1_000_000, 10_000),
        (0.5, 1, 1),
    ],
)
def test_whole(fraction: float, n: int, wanted: int) -> None:
    assert whole(fraction, n) == wanted


@given(some.integers(1, 1000), some.integers(1, 3000))
def test_whole_is_exact_for_thousandths(thousandths: int, n: int) -> None:
    exact = floor(Fraction(thousandths, 1000) * n + Fraction(1, 2))
    assert whole(thousandths / 1000, n) == min(n, max(1, exact))


def test_steps() -> None:
    found = [PAPER.at(t, 10) for t in range(1, 11)]
    assert found == pytest.approx([0.1, 0.1, 0.2, 0.2, 0.3, 0.3, 0.4, 0.4, 0.5, 0.5])
    edges = [whole(PAPER.at(t, 1000), 100) for t in (1, 200, 201, 400, 401, 600, 601, 800, 801, 1000)]
    assert edges == [10, 10, 20, 20, 30, 30, 40, 40, 50, 50]


def test_steps_with_a_length_that_does_not_divide() -> None:
    """Delta_T = T / F is not whole: 7 / 3 rounds a level."""
    assert [Steps(0.1, 0.3, 3).at(t, 7) for t in range(1, 8)] == pytest.approx([0.1] * 3 + [0.2] * 2 + [0.3] * 2)


def test_one_level_is_constant() -> None:
    assert {Steps(0.2, 0.2, 1).at(t, 9) for t in range(1, 10)} == {0.2}


@given(some.floats(0.01, 1), some.floats(0.01, 1), some.integers(2, 12), some.integers(1, 60))
def test_steps_rise_from_start_to_at_most_end(one: float, other: float, levels: int, rounds: int) -> None:
    start, end = min(one, other), max(one, other)
    schedule = Steps(start, end, levels)
    found = [schedule.at(t, rounds) for t in range(1, rounds + 1)]
    assert found == sorted(found)
    assert found[0] == start
    assert found[-1] <= end + 1e-12
    if rounds >= levels:
        assert found[-1] == pytest.approx(end)


def test_listed() -> None:
    schedule = Listed((0.1, 0.1, 0.4))
    assert [schedule.at(t, 99) for t in (1, 2, 3, 4, 50)] == [0.1, 0.1, 0.4, 0.4, 0.4]
    assert cost(schedule, 10, 99, 5) == 1 + 1 + 4 + 4 + 4


def test_a_number_is_a_constant_schedule() -> None:
    assert scheduled(0.3) == Constant(0.3)
    assert scheduled(PAPER) is PAPER


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_the_ends_of_alpha_are_allowed(alpha: float) -> None:
    assert Attention(alpha).alpha == alpha


class Unsaid(Schedule):
    pass


def test_a_schedule_says_how_many() -> None:
    with pytest.raises(TypeError, match="Unsaid"):
        Unsaid().at(1, 1)


def test_only_schedules_without_a_length_extend() -> None:
    assert [Attention(0.9, by).needs.rounds for by in (0.1, Constant(0.1), Listed((0.1, 0.2)), PAPER)] == [0, 0, 0, 1]
    assert not fk.methods.attn().select.needs.rounds
    assert fk.methods.adafl().select.needs.rounds


@pytest.mark.parametrize(("method", "extends"), [("adafl", False), ("attn", True)])
def test_a_run_by_steps_is_not_continued_to_more_rounds(
    tmp_path: Path, federate: Any, method: str, extends: bool
) -> None:
    short = fk.Experiment(fk.methods.METHODS[method](), federate((4, 5, 6)), "mlr", 2)
    fk.run(short, tmp_path / "run")
    if extends:
        assert len(fk.run(replace(short, rounds=4), tmp_path / "run", resume=True).lines) == 4
    else:
        with pytest.raises(BadInput, match="depends on the number of rounds"):
            fk.run(replace(short, rounds=4), tmp_path / "run", resume=True)
