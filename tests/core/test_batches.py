"""The plan of a round's batches: who uses which sample when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedkin.core import batches, rng
from fedkin.core.batches import Plan, number, planned


def plan(sizes: Any, round: int = 1, seed: int = 0, clients: Any = None, **how: Any) -> Plan:
    sizes = np.asarray(sizes, dtype=np.int64)
    clients = np.arange(len(sizes)) if clients is None else np.asarray(clients)
    options = {"batch": 4, "steps": None, "epochs": None} | how
    if options.pop("apart", False):
        options["beside"] = [rng.keys(seed, f"batches {b + 1}", round, clients) for b in range(1, options["per_step"])]
    return planned(sizes, rng.keys(seed, "batches", round, clients), round, **options)


def used(found: Plan, client: int) -> list[list[int]]:
    """The real samples of each batch."""
    return [found.rows[client, k, :c].tolist() for k, c in enumerate(found.count[client].tolist()) if c]


RAGGED = (1, 3, 4, 5, 25, 8)
SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(1, 12), st.integers(1, 5), st.integers(0, 9))
def test_fresh_batches(sizes: list[int], batch: int, steps: int, seed: int) -> None:
    """Distinct samples of the client's own, as many as a batch has or, where there are fewer, all of them in order."""
    found = plan(sizes, seed=seed, batch=batch, steps=steps)
    assert found.rows.shape == (len(sizes), steps, min(batch, max(sizes)))
    for client, size in enumerate(sizes):
        drawn = used(found, client)
        assert len(drawn) == steps == found.batches[client]
        for rows in drawn:
            assert len(rows) == len(set(rows)) == min(batch, size)
            assert set(rows) <= set(range(size))
            if size <= batch:
                assert rows == list(range(size))


@settings(max_examples=40, deadline=None)
@given(SIZES, st.integers(1, 12), st.integers(1, 5), st.integers(0, 9))
def test_fresh_batches_are_floyds(sizes: list[int], batch: int, steps: int, seed: int) -> None:
    """The same picks as Floyd's algorithm makes one by one, from the same numbers of the client's stream."""
    found = plan(sizes, seed=seed, batch=batch, steps=steps)
    width = min(batch, max(sizes))
    for client, size in enumerate(sizes):
        if size <= width:
            continue
        draws = iter(rng.uniform(rng.keys(seed, "batches", 1, np.array([client])), 0, steps * width)[0].tolist())
        for step in range(steps):
            picks: list[int] = []
            for j in range(width):
                last = size - width + j
                pick = int(next(draws) * (last + 1))
                picks.append(last if pick in picks else pick)
            assert found.rows[client, step].tolist() == picks


@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(1, 12), st.integers(1, 3), st.integers(0, 9))
def test_epochs(sizes: list[int], batch: int, epochs: int, seed: int) -> None:
    """Every epoch has every sample exactly once; all batches but an epoch's last are full."""
    found = plan(sizes, seed=seed, batch=batch, epochs=epochs)
    for client, size in enumerate(sizes):
        drawn = used(found, client)
        each = -(-size // batch)
        assert len(drawn) == epochs * each == found.batches[client]
        for epoch in range(epochs):
            part = drawn[epoch * each : (epoch + 1) * each]
            assert [len(rows) for rows in part[:-1]] == [batch] * (each - 1)
            assert len(part[-1]) == (size - 1) % batch + 1
            assert sorted(row for rows in part for row in rows) == list(range(size))


@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(1, 12), st.integers(1, 4), st.booleans())
def test_cyclic_batches(sizes: list[int], batch: int, work: int, by_steps: bool) -> None:
    """The list of batches is fixed, and each round begins where the last one ended."""
    how = {"steps": work} if by_steps else {"epochs": work}
    rounds = [plan(sizes, round=t, batch=batch, sampler="cyclic", **how) for t in (1, 2, 3, 4)]
    for client, size in enumerate(sizes):
        fixed = [list(range(first, min(first + batch, size))) for first in range(0, size, batch)]
        walk = [rows for found in rounds for rows in used(found, client)]
        assert len(walk) == 4 * (work if by_steps else work * len(fixed))
        assert walk == [fixed[k % len(fixed)] for k in range(len(walk))]


WAYS: list[dict[str, Any]] = [
    {"steps": 3},
    {"epochs": 2},
    {"steps": 3, "sampler": "cyclic"},
    {"epochs": 2, "sampler": "cyclic"},
    {"steps": 2, "per_step": 3},
    {"steps": 2, "per_step": 3, "apart": True},
    {"epochs": 2, "per_step": 2, "apart": True},
    {"steps": 2, "per_step": 2, "apart": True, "sampler": "cyclic"},
]


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_padding_never_counts(how: dict[str, Any]) -> None:
    found = plan(RAGGED, **how)
    width = found.rows.shape[2]
    assert (found.count <= width).all()
    for client, size in enumerate(RAGGED):
        total = int(found.batches[client])
        assert (found.count[client, :total] > 0).all()
        assert not found.count[client, total:].any()
        assert (found.rows[client] < size).all()  # what is gathered for padding is the client's own, too
        beyond = np.arange(width) >= found.count[client][:, None]
        assert not found.rows[client][beyond].any()  # its first sample
    assert np.array_equal(found.full, found.count == width)


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_a_plan_does_not_depend_on_company(how: dict[str, Any]) -> None:
    """Alone, in a chunk with larger clients, or in another order: the same samples in the same batches."""
    together = plan(RAGGED, round=5, **how)
    order = [3, 0, 5, 4, 1, 2]
    shaken = plan([RAGGED[i] for i in order], round=5, clients=order, **how)
    for client, size in enumerate(RAGGED):
        alone = plan([size], round=5, clients=[client], **how)
        assert used(alone, 0) == used(together, client) == used(shaken, order.index(client))


@pytest.mark.parametrize("how", WAYS[:2], ids=str)
def test_plans_differ_by_seed_round_and_client(how: dict[str, Any]) -> None:
    first = plan([25, 25], **how)
    assert used(first, 0) != used(first, 1)
    assert used(first, 0) != used(plan([25, 25], round=2, **how), 0)
    assert used(first, 0) != used(plan([25, 25], seed=1, **how), 0)
    drawn = used(first, 0)
    half = len(drawn) // 2
    assert drawn[0] != drawn[1]
    assert drawn[:half] != drawn[half : 2 * half]


def test_fresh_batches_are_uniform() -> None:
    """Every sample is as likely as any other, in every place among a batch, and so is every pair; the seed is fixed."""
    found = plan([10] * 50, steps=200, batch=4).rows.reshape(-1, 4)
    assert stats.chisquare(np.bincount(found.ravel(), minlength=10)).pvalue > 1e-3
    ordered = np.sort(found, axis=1)
    subsets = np.unique(ordered @ np.array([1000, 100, 10, 1]), return_counts=True)[1]
    assert len(subsets) == 210  # all 10 choose 4
    assert stats.chisquare(subsets).pvalue > 1e-3


def test_epochs_are_uniform() -> None:
    found = plan([4] * 40, epochs=100, batch=1).rows.reshape(-1, 4)
    orders = np.unique(found @ np.array([1000, 100, 10, 1]), return_counts=True)[1]
    assert len(orders) == 24
    assert stats.chisquare(orders).pvalue > 1e-3


@pytest.mark.parametrize(
    ("size", "how", "steps"),
    [
        (25, {"steps": 7}, 7),
        (1, {"steps": 7}, 7),
        (25, {"epochs": 1}, 7),
        (24, {"epochs": 2}, 12),
        (1, {"epochs": 3}, 3),
        (25, {"epochs": 1, "per_step": 2, "apart": True}, 7),
        (1, {"epochs": 1, "per_step": 3, "apart": True}, 1),
        (25, {"steps": 7, "per_step": 2}, 7),
        (25, {"steps": 7, "per_step": 2, "apart": True}, 7),
    ],
)
def test_number_of_steps(size: int, how: dict[str, Any], steps: int) -> None:
    assert number(np.array([size]), 4, how.get("steps"), how.get("epochs")).tolist() == [steps]
    per = how.get("per_step", 1)
    found = plan([size], **how)
    assert found.batches.tolist() == [steps * per]
    assert (found.count > 0).all()


@pytest.mark.parametrize("how", [{"steps": 5}, {"epochs": 2}, {"epochs": 2, "sampler": "cyclic"}], ids=str)
@pytest.mark.parametrize("per_step", [2, 3])
def test_streams_apart(how: dict[str, Any], per_step: int) -> None:
    """The first batches of all steps are those of a plan with one batch a step; the others are drawn like them."""
    sizes = [25, 1, 40]
    one = plan(sizes, **how)
    found = plan(sizes, per_step=per_step, apart=True, **how)
    for client, size in enumerate(sizes):
        drawn = used(found, client)
        assert drawn[::per_step] == used(one, client)
        for b in range(1, per_step):
            mine = drawn[b::per_step]
            assert sorted(map(len, mine)) == sorted(map(len, used(one, client)))
            assert size == 1 or mine != used(one, client)
            if how == {"epochs": 2}:
                assert sorted(row for rows in mine for row in rows) == sorted([*range(size), *range(size)])


def test_a_large_client_is_quick_to_plan() -> None:
    found = plan([25_000, 1], steps=20, batch=20)
    assert all(len(set(rows)) == 20 for rows in used(found, 0))
    assert found.rows[0].max() > 20_000
    whole = batches.planned(np.array([25_000]), rng.keys(0, "batches", 1, np.array([0])), 1, 500, None, 1)
    assert np.array_equal(np.sort(whole.rows.ravel()), np.arange(25_000))
