"""Active FL: the values clients report, the survey before round 1, and the rule of selection."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import ceil, exp, floor
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy import stats
from small import Until

import fedkin as fk
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.select import Active

DRAWS = 2500


def task(n: int) -> Task:
    return Task(n, torch.full((n,), 4), 5, {"w": torch.zeros(1)}, lambda model, batch: torch.zeros(()))


def slot(values: list[float]) -> Slot:
    return {"values": torch.tensor(values, dtype=torch.float64)}


def counted(part: Active, values: list[float], seed: int = 0, draws: int = DRAWS) -> Counter[tuple[int, ...]]:
    gen, setting, known = torch.Generator().manual_seed(seed), task(len(values)), slot(values)
    return Counter(tuple(part(known, setting, 1, gen)[0].tolist()) for _ in range(draws))


def successive(p: dict[int, float], k: int) -> dict[tuple[int, ...], float]:
    """The chance of every set of k by successive draws."""
    if k == 0:
        return {(): 1.0}
    found: dict[tuple[int, ...], float] = {}
    for i, weight in p.items():
        rest = {j: w for j, w in p.items() if j != i}
        for s, chance in successive(rest, k - 1).items():
            key = tuple(sorted((i, *s)))
            found[key] = found.get(key, 0.0) + weight / sum(p.values()) * chance
    return found


def law(part: Active, values: list[float], m: int) -> dict[tuple[int, ...], float]:
    """The rule of card 2.12 by enumeration, for m > 1."""
    n = len(values)
    order = sorted(range(n), key=lambda i: values[i])
    left = sorted(order[floor(part.alpha1 * n) :])
    chances = {i: exp(part.alpha2 * values[i]) for i in left}
    by_value = ceil((1 - part.alpha3) * m)
    found: dict[tuple[int, ...], float] = {}
    for first, chance in successive(chances, by_value).items():
        others = [i for i in range(n) if i not in first]
        ways = list(combinations(others, m - by_value))
        for rest in ways:
            key = tuple(sorted((*first, *rest)))
            found[key] = found.get(key, 0.0) + chance / len(ways)
    return found


VALUES = [3.0, 1.0, 2.5, 0.2, 4.0, 1.7]


@pytest.mark.parametrize(
    ("part", "m"),
    [
        (Active(alpha1=0.5, alpha2=0.7, alpha3=0.5, fraction=1 / 3), 2),
        (Active(alpha1=0.0, alpha2=0.5, alpha3=0.0, fraction=1 / 3), 2),
        (Active(alpha1=1 / 3, alpha2=1.0, alpha3=0.3, fraction=0.5), 3),  # ceil(2.1): all three by value
        (Active(alpha1=1 / 3, alpha2=1.0, alpha3=0.5, fraction=0.5), 3),  # ceil(1.5) = 2 by value
        (Active(alpha1=0.0, alpha2=0.0, alpha3=0.0, fraction=0.5), 3),  # uniform
        (Active(alpha1=0.0, alpha2=2.0, alpha3=1.0, fraction=0.5), 3),  # uniform too
    ],
)
def test_the_rule_by_enumeration(part: Active, m: int) -> None:
    wanted, found = law(part, VALUES, m), counted(part, VALUES)
    assert sum(wanted.values()) == pytest.approx(1.0)
    assert set(found) <= set(wanted)
    sets = list(wanted)
    assert stats.chisquare([found[s] for s in sets], [DRAWS * wanted[s] for s in sets]).pvalue > 1e-3


def test_the_smallest_values_have_no_chance_but_the_uniform_one() -> None:
    values = [float(i) for i in range(8)]
    found = counted(Active(alpha1=0.75, alpha2=0.0, alpha3=0.0, fraction=0.25), values, draws=300)
    assert set(found) == {(6, 7)}
    found = counted(Active(alpha1=0.75, alpha2=0.0, alpha3=0.5, fraction=0.25), values, draws=2000)
    assert all(6 in s or 7 in s for s in found)
    assert {i for s in found for i in s} == set(range(8))


def test_with_too_few_left_the_rest_are_uniform() -> None:
    found = counted(Active(alpha1=0.75, alpha2=1.0, alpha3=0.0, fraction=0.5), [float(i) for i in range(8)], draws=2000)
    assert all({6, 7} <= set(s) for s in found)
    sets = [(*rest, 6, 7) for rest in combinations(range(6), 2)]
    assert stats.chisquare([found[s] for s in sets]).pvalue > 1e-3


def test_huge_values_do_not_overflow() -> None:
    found = counted(Active(alpha1=0.0, alpha2=1.0, alpha3=0.0, fraction=0.25), [1e6, 1e6 + 1, 0.0, 5.0], draws=2000)
    assert set(found) == {(0,), (1,)}
    share = exp(1.0) / (1 + exp(1.0))
    assert stats.binomtest(found[(1,)], 2000, share).pvalue > 1e-3


def test_nothing_known_is_uniform() -> None:
    part = Active(fraction=0.5)
    values = part.init(task(4))["values"].tolist()
    assert values == [-float("inf")] * 4
    found = counted(part, values, draws=3000)
    assert len(found) == 6
    assert stats.chisquare(list(found.values())).pvalue > 1e-3


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_a_loss_that_is_not_finite_does_not_hide_the_others(bad: float) -> None:
    """A client whose loss overflowed has no say; the others are still drawn by their values."""
    part = Active(alpha1=0.0, alpha2=1.0, alpha3=0.0, fraction=0.25)
    found = counted(part, [0.0, bad, 8.0, 0.0], draws=300)
    assert found[(2,)] > 280


@pytest.mark.parametrize(("alpha1", "n", "cut"), [(0.29, 100, 29), (0.57, 100, 57), (0.75, 10, 7), (0.58, 50, 29)])
def test_the_cut_is_the_floor_of_the_exact_product(alpha1: float, n: int, cut: int) -> None:
    """0.29 * 100 = 28.999...: as A-D2 has it for K."""
    found = counted(Active(alpha1=alpha1, alpha2=0.0, alpha3=0.0, fraction=0.1), [float(i) for i in range(n)], 1, 200)
    assert min(i for s in found for i in s) == cut


@pytest.mark.parametrize(("alpha3", "m", "by_value"), [(0.7, 10, 3), (0.1, 10, 9), (0.9, 10, 1), (0.25, 10, 8)])
def test_the_share_by_value_is_the_ceiling_of_the_exact_product(alpha3: float, m: int, by_value: int) -> None:
    """(1 - 0.7) * 10 = 3.0000000000000004, which is not 4."""
    values = [float(i) for i in range(100)]
    part = Active(alpha1=0.0, alpha2=50.0, alpha3=alpha3, fraction=m / 100)
    found = counted(part, values, 1, 60)  # so steep that the largest are taken in order
    surely = sum(1 for i in range(100 - m, 100) if all(i in s for s in found))
    assert surely == by_value


def test_one_client_is_drawn_uniformly_with_probability_alpha3() -> None:
    """Card 2.12, edge: 'm = 1: the draw is uniform with probability alpha3'."""
    part = Active(alpha1=0.75, alpha2=0.0, alpha3=0.4, fraction=0.25)
    found = counted(part, [0.0, 1.0, 2.0, 3.0])
    wanted = [0.1, 0.1, 0.1, 0.7]
    assert stats.chisquare([found[(i,)] for i in range(4)], [DRAWS * p for p in wanted]).pvalue > 1e-3


def test_one_client_by_value_alone() -> None:
    part = Active(alpha1=0.5, alpha2=1.0, alpha3=0.0, fraction=0.25)
    found = counted(part, [0.0, 1.0, 2.0, 3.0])
    assert set(found) == {(2,), (3,)}
    assert stats.binomtest(found[(3,)], DRAWS, exp(1) / (1 + exp(1))).pvalue > 1e-3


# values


def test_a_value_is_the_root_of_the_size_times_the_mean_loss() -> None:
    part, setting = Active(), task(4)
    report = {"size": torch.tensor([4.0, 9.0]).double(), "loss": torch.tensor([0.5, 2.0]).double()}
    reply = Reply(torch.tensor([1, 3]), {"model": {"w": torch.zeros(2, 1)}}, report)
    kept = torch.ones(2, dtype=torch.float64)
    before = slot([7.0, 7.0, 7.0, 7.0])
    after = part.observe(before, setting, Sent(torch.tensor([1, 3])), reply, kept, None, torch.Generator())
    assert after["values"].tolist() == [7.0, 1.0, 7.0, 6.0]
    assert before["values"].tolist() == [7.0] * 4


def numbers(model: Any) -> int:
    return sum(int(value.numel()) for value in model.values())


def stopped(method: fk.Method, federation: Any, folder: Path | None, rounds: int, at: int | None = None) -> fk.Result:
    experiment = fk.Experiment(method, federation, "mlr", rounds, evaluate_every=1)
    if at is not None:
        fk.run(experiment, folder, callbacks=[Until(at)])
        return fk.run(experiment, folder, resume=True)
    return fk.run(experiment, folder)


def test_the_survey_is_counted_once(federate: Any, tmp_path: Path) -> None:
    """Every client is sent the first model; also in a run that was resumed."""
    federation = federate((4, 5, 6, 7, 8))
    whole = stopped(fk.methods.active(fraction=0.4), federation, None, 3)
    size = numbers(whole.models["global"]) * 4
    assert whole.summary["cost"] == {
        "uploads": 2 * 3,
        "downloads": 5 + 2 * 3,
        "bytes_up": 2 * 3 * size,
        "bytes_down": (5 + 2 * 3) * size,
        "client_rounds": 2 * 3,
    }
    assert [line["downloads"] for line in whole.lines] == [2, 2, 2]
    again = stopped(fk.methods.active(fraction=0.4), federation, tmp_path / "run", 3, at=2)
    assert again.summary["cost"] == whole.summary["cost"]
    for name, value in whole.models["global"].items():
        assert torch.equal(again.models["global"][name], value)


def test_all_cut_is_uniform() -> None:
    """alpha1 = 1 leaves nobody by value."""
    found = counted(Active(alpha1=1.0, fraction=0.25), [1.0, 2.0, 3.0, 4.0], draws=2000)
    assert len(found) == 4
    assert stats.chisquare(list(found.values())).pvalue > 1e-3
