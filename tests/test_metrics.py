"""Every metric against scikit-learn and against cases by hand, for one client, for many at once, and weighted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as theirs

import fedkin as fk
from fedkin import metrics
from fedkin.metrics import BINS, METRICS, of_clients, of_task, value

CLASSIFY, REGRESS = of_task("classify"), of_task("regress")


def case(seed: int, rows: int, classes: int, coarse: bool) -> tuple[np.ndarray, np.ndarray]:
    """Random outputs and truth; `coarse` outputs are whole numbers, so that many scores tie."""
    draw = np.random.default_rng(seed)
    out = draw.normal(scale=2.0, size=(rows, classes))
    y = draw.integers(0, classes, rows)
    return (np.round(out) if coarse else out), (draw.choice(y, rows) if draw.random() < 0.5 else y)


def numbers(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    y = draw.normal(size=rows)
    return y + draw.normal(size=rows), y


def probabilities(out: np.ndarray) -> np.ndarray:
    raised = np.exp(out - out.max(1, keepdims=True))
    found: np.ndarray = raised / raised.sum(1, keepdims=True)
    return found


def expected(name: str, out: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> float:
    """The metric by scikit-learn, or by a plain loop where it has none."""
    p, said, classes = probabilities(out), out.argmax(1), out.shape[1]
    kept: dict[str, Any] = {"sample_weight": weights}
    if name == "accuracy":
        return float(theirs.accuracy_score(y, said, **kept))
    if name == "balanced_accuracy":
        return float(theirs.recall_score(y, said, labels=np.unique(y), average="macro", zero_division=0, **kept))
    if name == "auc":
        present = [c for c in range(classes) if 0 < (y == c).sum() < len(y)]
        scores = np.round(np.log(p), 11)  # probabilities that differ in the last digit are equal
        each = [theirs.roc_auc_score(y == c, scores[:, c], **kept) for c in present]
        return float(np.mean(each)) if each else math.nan
    if name == "f1" and classes == 2:
        return float(theirs.f1_score(y, said, zero_division=np.nan, **kept))
    if name == "f1":
        found = np.union1d(y, said)
        return float(theirs.f1_score(y, said, labels=found, average="macro", zero_division=0, **kept))
    if name == "log_loss":
        return float(theirs.log_loss(y, p, labels=list(range(classes)), **kept))
    return calibration_by_hand(p, y, np.ones(len(y)) if weights is None else weights)


def calibration_by_hand(p: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    total = 0.0
    for b in range(BINS):
        sure = p.max(1)
        inside = (sure > b / BINS) & (sure <= (b + 1) / BINS)
        if weights[inside].sum() > 0:
            right = np.average(p[inside].argmax(1) == y[inside], weights=weights[inside])
            total += weights[inside].sum() * abs(right - np.average(sure[inside], weights=weights[inside]))
    return total / weights.sum()


cases = given(seed=st.integers(0, 10**6), rows=st.integers(1, 40), classes=st.integers(2, 5), coarse=st.booleans())


@pytest.mark.parametrize("name", CLASSIFY)
@settings(max_examples=60, deadline=None)
@cases
def test_as_scikit_learn(name: str, seed: int, rows: int, classes: int, coarse: bool) -> None:
    out, y = case(seed, rows, classes, coarse)
    assert value(name, out, y) == pytest.approx(expected(name, out, y), abs=1e-6, nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(2, 40))
def test_numbers_as_scikit_learn(seed: int, rows: int) -> None:
    out, y = numbers(seed, rows)
    assert value("r2", out, y) == pytest.approx(theirs.r2_score(y, out), abs=1e-6, rel=1e-6)
    assert value("rmse", out[:, None], y) == pytest.approx(theirs.root_mean_squared_error(y, out), abs=1e-6)
    assert value("rmse", out, y, scale=7.0) == pytest.approx(7 * theirs.root_mean_squared_error(y, out), abs=1e-5)
    assert value("r2", out, y, scale=7.0) == value("r2", out, y), "a share of the variance has no unit"


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=40, deadline=None)
@cases
def test_weights_are_repeated_rows(name: str, seed: int, rows: int, classes: int, coarse: bool) -> None:
    """In one weighting, and in many at once."""
    out, y = case(seed, rows, classes, coarse) if name in CLASSIFY else numbers(seed, rows)
    times = np.random.default_rng(seed).integers(0, 4, (3, rows))
    times[:, 0] = 1  # somebody is drawn
    found = value(name, out, y, times)
    assert found.shape == (3,)
    for row, got in zip(times, found, strict=True):
        repeated = value(name, np.repeat(out, row, 0), np.repeat(y, row))
        assert got == pytest.approx(repeated, abs=1e-9, nan_ok=True)
        assert value(name, out, y, row) == pytest.approx(repeated, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("name", METRICS)
def test_many_weightings_need_not_be_held_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out, y = case(3, 20, 3, True) if name in CLASSIFY else numbers(3, 20)
    times = np.random.default_rng(1).integers(0, 3, (50, 20))
    whole = value(name, out, y, times)
    monkeypatch.setattr(metrics, "HELD", 200)
    np.testing.assert_array_equal(value(name, out, y, times), whole)


@pytest.mark.parametrize("name", CLASSIFY)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4))
def test_clients_in_a_stack_as_each_alone(name: str, seed: int, classes: int) -> None:
    """What fills the stack up counts for nothing."""
    sizes = np.random.default_rng(seed).integers(0, 9, 4)
    found = [case(seed + i, max(int(size), 1), classes, True) for i, size in enumerate(sizes)]
    width = max(8, *sizes)
    out, y = torch.zeros(4, width, classes), torch.zeros(4, width, dtype=torch.int64)
    out[:, :, 0] = torch.nan  # rows that are not there may hold anything
    live = torch.arange(width) < torch.as_tensor(sizes)[:, None]
    for i, (one, truth) in enumerate(found):
        out[i, : sizes[i]] = torch.from_numpy(one)[: sizes[i]].float()
        y[i, : sizes[i]] = torch.from_numpy(truth)[: sizes[i]]
    each = of_clients([name], out, y, live)[name]
    for i, size in enumerate(sizes):
        alone = value(name, *found[i]) if size else math.nan
        assert float(each[i]) == pytest.approx(alone, abs=1e-6, nan_ok=True)


def test_auc_by_hand() -> None:
    """Class 1 scores 2, 1, 1 and class 0 scores 1, 0: of six pairs four are in order and two are ties."""
    out = np.array([[0, 2.0], [0, 1], [0, 1], [0, 1], [0, 0]])
    y = np.array([1, 1, 1, 0, 0])
    assert value("auc", out, y) == pytest.approx((4 + 2 * 0.5) / 6)
    assert value("auc", out[:, ::-1].copy(), 1 - y) == pytest.approx(5 / 6), "names of classes do not matter"
    assert value("auc", 1000 * out, y) == pytest.approx(5 / 6), "nor does a softmax that is 1 in all digits"


def test_what_is_not_defined_is_nan() -> None:
    out, one = np.array([[0.0, 1], [2, 1]]), np.array([1, 1])
    assert math.isnan(value("auc", out, one)), "one class only"
    assert value("balanced_accuracy", out, one) == 0.5, "over the classes that there are"
    assert math.isnan(value("f1", out[1:], np.array([0]))), "class 1 is neither there nor predicted"
    assert value("f1", out[:1], np.array([0])) == 0.0
    assert math.isnan(value("r2", np.array([1.0]), np.array([2.0]))), "one row"
    assert math.isnan(value("r2", np.array([1.0, 2, 3]), np.full(3, 0.1))), "the truth does not vary"
    for name in METRICS:
        truth = np.zeros(3, dtype=int) if name in CLASSIFY else np.arange(3.0)
        outs = np.zeros((3, 2)) if name in CLASSIFY else np.zeros(3)
        assert math.isnan(value(name, outs, truth, np.zeros(3))), "no rows at all"


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_prediction_that_is_not_finite_is_wrong(broken: float) -> None:
    """It is no way to a better score: not by leaving a metric undefined, either."""
    out, y = np.array([[3.0, 0, 0], [0, 3, 0], [0, 0, 3], [3, 0, 0]]), np.array([0, 1, 2, 0])
    worse = out.copy()
    worse[0, 0] = broken
    assert value("accuracy", worse, y) == 0.75
    assert value("balanced_accuracy", worse, y) == pytest.approx((0.5 + 1 + 1) / 3)
    assert value("f1", worse, y) == pytest.approx((2 / 3 + 1 + 1) / 3)
    assert value("auc", worse, y) < value("auc", out, y) == 1.0
    assert value("log_loss", worse, y) == math.inf
    assert value("calibration_error", worse, y) > value("calibration_error", out, y)
    assert value("rmse", np.array([broken, 1.0]), np.array([0.0, 1.0])) == math.inf
    assert value("r2", np.array([broken, 1.0]), np.array([0.0, 1.0])) == -math.inf


def test_calibration_by_hand() -> None:
    """Four predictions at confidence 0.75, of which two are right, and one at 1/2 that is right."""
    sure = np.log([[0.75, 0.25]] * 4 + [[0.5, 0.5]])
    y = np.array([0, 0, 1, 1, 0])
    assert value("calibration_error", sure, y) == pytest.approx((4 * 0.25 + 1 * 0.5) / 5)


def test_gains_are_positive_where_they_are_good() -> None:
    assert METRICS["auc"].gain(0.8, 0.7) == pytest.approx(0.1)
    assert METRICS["rmse"].gain(1.5, 2.0) == 0.5
    assert {name for name, metric in METRICS.items() if not metric.higher_is_better} == {
        "log_loss",
        "calibration_error",
        "rmse",
    }


def test_names() -> None:
    assert (metrics.default("classify"), metrics.default("regress")) == ("accuracy", "r2")
    assert metrics.deciding(None, "regress") == "r2"
    assert metrics.deciding("auc", "classify") == "auc"
    with pytest.raises(fk.BadInput, match=r"numbers, which have no ROC AUC; use --metric r2, rmse\."):
        metrics.deciding("auc", "regress")
    with pytest.raises(fk.BadInput, match="did you mean auc"):
        metrics.deciding("acu", "classify")
