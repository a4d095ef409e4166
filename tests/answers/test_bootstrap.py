"""Intervals of a site's gain: they cover what they say, and do not call noise a gain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedkin import metrics
from fedkin.answers.bootstrap import Gain, counts, drawn_again, gains, replicates
from fedkin.answers.held_out import HeldOut
from tests.answers.simulated import against, site, true_gain

SITES, COUNT = 120, 300


def measured(lift: float, rows: int, splits: int, methods: int) -> list[dict[str, Gain]]:
    rng = np.random.default_rng(0)
    many = (site(rng, rows, splits, methods, lift) for _ in range(SITES))
    return [gains(one, against(methods), "accuracy", np.random.default_rng(i), COUNT) for i, one in enumerate(many)]


@pytest.mark.parametrize(("rows", "splits"), [(80, 5), (240, 10)])
def test_methods_that_are_no_better_than_alone_are_rarely_called_so(rows: int, splits: int) -> None:
    """The best of four equal methods looks better than Local by chance: its interval must know that it was chosen."""
    wrong = [max(found.low for found in one.values()) > 0 for one in measured(0.0, rows, splits, 4)]
    assert np.mean(wrong) <= 0.06


@pytest.mark.parametrize("methods", [1, 4])
def test_intervals_cover_the_true_gain(methods: int) -> None:
    truth = true_gain(0.6)
    found = measured(0.6, 160, 8, methods)
    best = [max(one.values(), key=lambda gain: gain.gain) for one in found]
    assert np.mean([one.low <= truth <= one.high for one in best]) >= 0.92
    assert np.mean([all(g.low <= truth <= g.high for g in one.values()) for one in found]) >= 0.9
    assert np.mean([one.low > 0 for one in best]) > 0.6, "and they are not so wide that they say nothing"


def test_the_same_rows_on_many_splits_are_no_more_rows() -> None:
    one = site(np.random.default_rng(3), 200, 1, 1, 0.5)
    outputs = {name: [seeds[0] * 10] for name, seeds in one.outputs.items()}
    ten = HeldOut(one.rows * 10, one.y * 10, outputs, one.scale * 10)
    few, many = (gains(s, against(1), "accuracy", np.random.default_rng(0), 2000)["m0"] for s in (one, ten))
    assert many.gain == pytest.approx(few.gain)
    assert many.half == pytest.approx(few.half, rel=0.05), "ten times the same patients are not ten times the patients"


def test_more_methods_to_choose_from_make_intervals_wider() -> None:
    whole = site(np.random.default_rng(5), 200, 4, 6, 0.3)
    single = replace(whole, outputs={name: whole.outputs[name] for name in ("local", "m0")})
    of_six = gains(whole, against(6), "accuracy", np.random.default_rng(0))["m0"]
    of_one = gains(single, against(1), "accuracy", np.random.default_rng(0))["m0"]
    assert of_six.gain == pytest.approx(of_one.gain)
    assert of_six.half > 1.1 * of_one.half


def test_splits_that_differ_by_more_than_their_rows_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    calm = site(rng, 400, 6, 1, 0.5)
    wild = dict(calm.outputs)
    shift = [-2.0, 2.0, -2.0, 2.0, -2.0, 2.0]
    wild["m0"] = [[out + np.array([0.0, s]) for out, s in zip(seed, shift, strict=True)] for seed in calm.outputs["m0"]]
    first, second = (
        gains(one, against(1), "accuracy", np.random.default_rng(0))["m0"]
        for one in (calm, replace(calm, outputs=wild))
    )
    assert second.half > 1.5 * first.half


def test_splits_that_differ_by_their_rows_only_add_little() -> None:
    """The noise of the rows is in the replicates already; drawing the splits must not add it again."""
    rng, added, plain = np.random.default_rng(0), [], []
    for _ in range(20):
        gained = rng.normal(0, 1, 120)  # of each row, whatever the split
        at = [rng.permutation(120)[:30] for _ in range(10)]
        found = np.array([[gained[rows].mean() for rows in at]])  # (1, splits)
        weights = counts(120, 400, rng)
        again = np.stack([(weights[:, r] @ gained[r]) / weights[:, r].sum(1) for r in at], 1)[:, None]  # (b, 1, splits)
        added.append(drawn_again(found, again, rng).std())
        plain.append(found.std(ddof=1) / np.sqrt(10))
    assert np.mean(added) < 0.6 * np.mean(plain)


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "log_loss"])
def test_every_metric_is_that_of_the_metrics_room(metric: str) -> None:
    rng = np.random.default_rng(2)
    rows = [np.array([2, 5, 9, 11]), np.array([1, 5, 7, 9])]
    y = [rng.integers(0, 3, 4) for _ in rows]
    outputs = {name: [[rng.normal(size=(4, 3)) for _ in rows] for _ in range(2)] for name in ("local", "m0")}
    one = HeldOut(rows, y, outputs, [1.0, 1.0])
    weights = rng.integers(0, 3, (5, len(one.distinct))).astype(float)
    found = one.values(metric, weights)
    assert found.shape == (5, 2, 2, 2)
    at = np.searchsorted(one.distinct, rows[1])
    expected = metrics.value(metric, outputs["m0"][1][1], y[1], weights[:, at])
    np.testing.assert_allclose(found[:, 1, 1, 1], expected)


def test_a_lower_loss_is_a_gain() -> None:
    one = site(np.random.default_rng(0), 200, 2, 1, 1.0)
    assert gains(one, against(1), "log_loss", np.random.default_rng(0), 200)["m0"].gain > 0


def test_a_site_without_test_rows_has_no_gain() -> None:
    empty = np.zeros(0, dtype=np.int64)
    one = HeldOut([empty], [empty], {n: [[np.zeros((0, 2))]] for n in ("local", "m0")}, [1.0])
    assert gains(one, against(1), "accuracy", np.random.default_rng(0)) == {}


def test_identical_predictions_gain_nothing_but_a_width_that_few_rows_have() -> None:
    one = site(np.random.default_rng(0), 60, 1, 1)
    same = replace(one, outputs=dict.fromkeys(one.outputs, one.outputs["local"]))
    found = gains(same, against(1), "accuracy", np.random.default_rng(0))["m0"]
    assert found.gain == 0
    assert 0.05 < found.half < 0.25


def test_many_sites_get_fewer_replicates() -> None:
    few = [site(np.random.default_rng(0), 240, 10, 6) for _ in range(12)]
    assert replicates(few) == 2000
    assert replicates(few * 100) < 2000


def test_rows_of_rarer_classes_are_counted_once() -> None:
    rows, y = [np.array([0, 1, 2, 3]), np.array([2, 3, 4])], [np.array([0, 0, 1, 2]), np.array([1, 2, 0])]
    assert HeldOut(rows, y, {}, [1.0, 1.0]).rarer == 2
