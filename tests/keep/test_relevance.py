"""Distances between what clients' updates were inverted to, and the part that keeps the majority."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import wasserstein_distance
from small import CLASSES, FEATURES, network
from torch import Tensor, nn

import fedkin as fk
from fedkin import round as rounds
from fedkin.core.rng import generator
from fedkin.engines import Stacked
from fedkin.keep.majority import two_median
from fedkin.keep.relevance import Relevance, UpdateDistance, wasserstein
from fedkin.messages import Reply, Sent

make = fk.methods


def dummies(m: int, classes: int, samples: int, features: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(m, classes, samples, features)))


# distances


@pytest.mark.parametrize("sizes", [(4, 3, 1, 5), (5, 2, 2, 3), (3, 4, 7, 2), (1, 2, 2, 2), (2, 1, 1, 1)])
def test_wasserstein_is_scipys(sizes: tuple[int, int, int, int]) -> None:
    z = dummies(*sizes)
    found = wasserstein(z)
    m, classes, _, features = sizes
    assert found.shape == (m, m)
    assert found.dtype == torch.float64
    for i in range(m):
        for j in range(m):
            wanted = 0.0
            for c in range(classes):
                for k in range(features):
                    wanted += wasserstein_distance(z[i, c, :, k].numpy(), z[j, c, :, k].numpy())
            assert float(found[i, j]) == pytest.approx(wanted, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("samples", [1, 2, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_wasserstein_is_a_metric(samples: int, dtype: torch.dtype) -> None:
    found = wasserstein(dummies(9, 3, samples, 4, seed=1).to(dtype))
    assert found.dtype == torch.float64
    assert torch.equal(found, found.T)
    assert torch.equal(found.diagonal(), torch.zeros(9, dtype=torch.float64))
    assert bool((found[~torch.eye(9, dtype=torch.bool)] > 0).all())
    through = (found[:, :, None] + found[None, :, :]).amin(1)
    assert bool((found <= through + (1e-9 if dtype == torch.float64 else 1e-4)).all())


def test_one_sample_a_class_is_l1() -> None:
    z = dummies(6, 4, 1, 5, seed=2)
    flat = z.flatten(1)
    assert torch.allclose(wasserstein(z), torch.cdist(flat, flat, p=1.0), rtol=1e-12, atol=1e-12)


def test_the_order_of_samples_and_no_other_matters_not() -> None:
    z = dummies(3, 2, 4, 3, seed=3)
    wanted = wasserstein(z)
    assert torch.allclose(wasserstein(z[:, :, [2, 0, 3, 1]]), wanted, atol=1e-12)
    mixed = z.clone()
    mixed[0] = mixed[0].flip(1)  # the samples of one client alone
    assert torch.allclose(wasserstein(mixed), wanted, atol=1e-12)
    other = z.clone()
    other[0] = other[0].flip(0)  # its classes
    assert not torch.allclose(wasserstein(other), wanted, atol=1e-3)
    order = [2, 0, 1]
    assert torch.allclose(wasserstein(z[order]), wanted[order][:, order], atol=1e-12)


def test_many_clients_are_pairs() -> None:
    """More than one block, if there are blocks."""
    z = dummies(150, 3, 2, 8, seed=4).float()
    found = wasserstein(z)
    for i, j in [(0, 149), (149, 0), (63, 64), (127, 128), (100, 3)]:
        assert float(found[i, j]) == pytest.approx(float(wasserstein(z[[i, j]])[0, 1]), rel=1e-6)


# the part


def kept(scores: list[float]) -> list[bool]:
    found: list[bool] = two_median(torch.tensor(scores, dtype=torch.float64)).tolist()
    return found


def begun(
    federate: Any, start: Any, keep: Any, sizes: tuple[int, ...] = (6, 9, 14, 7, 8, 12, 10), seed: int = 0
) -> Any:
    method = replace(make.pfedre(eta=0.2, batch=4), keep=keep)
    federation = federate(sizes, 2, (FEATURES,), CLASSES)
    return method, *start(Stacked, method, federation, network(), seed=seed, dtype=torch.float64)


def test_the_first_slot(federate: Any, start: Any) -> None:
    _, _, _, state = begun(federate, start, Relevance(samples=200))
    dummies = state.keep["start"]
    assert dummies.shape == (CLASSES * 200, FEATURES)
    assert abs(float(dummies.mean())) < 0.1
    assert abs(float(dummies.std()) - 1.0) < 0.1
    assert bool(state.keep["divergence"].isnan().all())
    assert state.keep["divergence"].dtype == torch.float64
    assert state.keep["relevant"].tolist() == state.keep["judged"].tolist() == [0] * 7
    again = begun(federate, start, Relevance(samples=200))[3]
    other = begun(federate, start, Relevance(samples=200), seed=1)[3]
    assert torch.equal(again.keep["start"], dummies)
    assert not torch.equal(other.keep["start"], dummies)


def test_pictures_have_dummies_of_their_shape(federate: Any, start: Any) -> None:
    method = make.pfedre(eta=0.2, batch=4, samples=2, iterations=3)
    federation = federate((6, 9, 7), 2, (1, 4, 4), CLASSES)
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.Linear(8, CLASSES))
    play, task, state = start(Stacked, method, federation, module)
    assert state.keep["start"].shape == (CLASSES * 2, 1, 4, 4)
    assert state.keep["start"].dtype == torch.float32
    state, _ = rounds.play(method, task, play, state)
    assert bool(state.keep["divergence"].isfinite().all())
    assert state.keep["judged"].tolist() == [1, 1, 1]


def test_scores_and_counts_add_up(federate: Any, start: Any) -> None:
    method, play, task, state = begun(federate, start, Relevance(iterations=5))
    for t in (1, 2, 3):
        before = state.keep
        state, log = rounds.play(method, task, play, state)
        mask = state.keep["relevant"] - before["relevant"]
        assert mask.bool().tolist() == kept(state.keep["divergence"].tolist())
        assert int(mask.sum()) == log.counted
        assert state.keep["judged"].tolist() == [t] * 7
        assert before["judged"].tolist() == [t - 1] * 7  # a slot is not changed in place


def test_the_gap_that_is_wanted(federate: Any, start: Any) -> None:
    """A-R8: no split where the medians of the groups are nearer than so many times the median absolute deviation."""
    method, play, task, state = begun(federate, start, Relevance(iterations=5))
    state, log = rounds.play(method, task, play, state)
    scores, inside = state.keep["divergence"].tolist(), state.keep["relevant"].tolist()
    groups = [[s for s, k in zip(scores, inside, strict=True) if k == side] for side in (1, 0)]
    gap = abs(median(groups[0]) - median(groups[1]))
    deviation = median(abs(score - median(scores)) for score in scores)
    assert 3 < log.counted < 7
    for times, wanted in ((0.999, log.counted), (1.001, 7.0)):
        keep = Relevance(iterations=5, min_gap=times * gap / deviation)
        method, play, task, state = begun(federate, start, keep)
        state, log = rounds.play(method, task, play, state)
        assert log.counted == wanted
        assert int(state.keep["relevant"].sum()) == wanted
        assert state.keep["divergence"].tolist() == pytest.approx(scores, rel=1e-12)


def replied(rows: Tensor, rate: float = 0.5) -> tuple[Sent, Reply]:
    """From 0, of a model of two tensors, in 1, 2, 3, 1, ... steps."""
    m = len(rows)
    sent = Sent(torch.arange(m), shared={"model": {"w": rows.new_zeros(2), "b": rows.new_zeros(rows.shape[1] - 2)}})
    ones = torch.ones(m, dtype=torch.float64)
    steps = torch.arange(m).double() % 3 + 1
    report = {"size": ones, "steps": steps, "reach": steps, "rate": rate * ones}
    return sent, Reply(torch.arange(m), {"model": {"w": rows[:, :2], "b": rows[:, 2:]}}, report)


def updates(seed: int, m: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(m, 5)))


def distances(rows: Tensor, metric: str) -> list[float]:
    """r_i of what the updates are a step, by rows and pairs."""
    wanted = []
    g = [row / (0.5 * (k % 3 + 1)) for k, row in enumerate(rows)]
    for i, u in enumerate(g):
        total = 0.0
        for j, v in enumerate(g):
            if metric == "cosine":
                small = min(float(u.norm()), float(v.norm())) < 1e-12
                total += 0.0 if i == j else 1.0 - (0.0 if small else float(u @ v / (u.norm() * v.norm())))
            else:
                total += float((u - v).norm(p=1 if metric == "l1" else 2))
        wanted.append(total)
    return wanted


@pytest.mark.parametrize("metric", ["l1", "l2", "cosine"])
def test_distances_of_updates(metric: str) -> None:
    rows = updates(3, 8)
    rows[5] = -rows[5].abs() * 4
    scores, mask, slot = judged(rows, metric)
    wanted = distances(rows, metric)
    assert scores == pytest.approx(wanted, rel=1e-10, abs=1e-12)
    assert mask == kept(wanted)
    assert slot["relevant"].bool().tolist() == mask


def judged(rows: Tensor, metric: str) -> tuple[list[float], list[bool], Any]:
    sent, reply = replied(rows)
    task = fk.Task(len(rows), torch.ones(len(rows)), 1, sent.shared["model"], lambda m, b: torch.zeros(()))
    keep = UpdateDistance(metric=metric)  # type: ignore[arg-type]
    mask, slot = keep(keep.init(task, generator(0, "keep")), task, sent, reply, 1, generator(0, "keep", 1))
    return slot["divergence"].tolist(), mask.bool().tolist(), slot


@pytest.mark.parametrize("metric", ["l1", "l2", "cosine"])
@pytest.mark.parametrize("seed", range(5))
def test_of_two_both_are_kept(metric: str, seed: int) -> None:
    """N = 2: r_1 = r_2, exactly."""
    scores, mask, _ = judged(updates(seed, 2), metric)
    assert scores[0] == scores[1] > 0
    assert mask == [True, True]


@pytest.mark.parametrize("metric", ["l1", "l2", "cosine"])
def test_who_did_not_move_is_still_scored(metric: str) -> None:
    """COS with it is 0, and with itself 1."""
    rows = updates(3, 7)
    rows[2] = 0.0
    scores, _, _ = judged(rows, metric)
    assert scores == pytest.approx(distances(rows, metric), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("metric", ["l1", "l2", "cosine"])
@pytest.mark.parametrize("what", [torch.inf, torch.nan, -torch.inf])
def test_an_update_that_is_not_finite_is_nobodys_measure(metric: str, what: float) -> None:
    rows = updates(3, 9)
    wanted = distances(rows[:8], metric)
    rows[8, 3] = what
    scores, mask, slot = judged(rows, metric)
    assert scores[:8] == pytest.approx(wanted, rel=1e-10, abs=1e-12)
    assert mask == [*kept(wanted), False]
    assert slot["relevant"][8] == 0.0


def test_updates_far_from_the_rest_go() -> None:
    rows = torch.from_numpy(np.random.default_rng(4).normal(size=(10, 6)))
    rows[[2, 7]] += 30.0
    assert UpdateDistance() == UpdateDistance(metric="l1")
    assert judged(rows, "l1")[1] == [i not in (2, 7) for i in range(10)]
