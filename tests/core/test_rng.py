"""Random streams: a key for every use, and no use of position."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from fedkin.core import rng


def test_a_key_depends_on_all_it_is_made_of() -> None:
    base = (1, "batches", 2, 3)
    changes = [(2, "batches", 2, 3), (1, "select", 2, 3), (1, "batches", 3, 3), (1, "batches", 2, 4), (1, "batches", 2)]
    found = {rng.key(*base), *(rng.key(*change) for change in changes)}
    assert len(found) == 1 + len(changes)
    assert rng.key(*base) == rng.key(*base)
    assert all(0 <= value < 2**64 for value in found)


def test_keys_of_a_large_federation_are_distinct() -> None:
    found = np.concatenate([rng.keys(0, "batches", t, np.arange(2000)) for t in range(1, 51)])
    assert len(np.unique(found)) == len(found)


def test_numbers_that_run_together_are_told_apart() -> None:
    assert rng.key(1, "a", 23) != rng.key(12, "a", 3)
    assert rng.key(1, "a1", 2) != rng.key(1, "a", 12)
    assert rng.key(0, "x", 1, 2) != rng.key(0, "x", 2, 1)


def test_keys_do_not_depend_on_position() -> None:
    clients = np.array([7, 0, 123, 5])
    together = rng.keys(4, "draws", 9, clients)
    assert together.tolist() == [rng.key(4, "draws", 9, int(client)) for client in clients]
    assert rng.keys(4, "draws", 9, clients[::-1]).tolist() == together[::-1].tolist()


def test_draws_do_not_depend_on_what_was_drawn_before_or_beside() -> None:
    streams = rng.keys(0, "draws", 1, np.arange(5))
    whole = rng.uniform(streams, 0, 100)
    assert np.array_equal(rng.uniform(streams, 40, 25), whole[:, 40:65])
    assert np.array_equal(rng.uniform(streams[3:4], 0, 100), whole[3:4])
    assert np.array_equal(rng.bits(streams, 3, 1)[:, 0] >> np.uint64(11), (whole[:, 3] * 2**53).astype(np.uint64))


def test_generators_are_keyed() -> None:
    def draw(*key: object) -> list[float]:
        return torch.rand(4, generator=rng.generator(*key)).tolist()  # type: ignore[arg-type]

    assert draw(0, "select", 1) == draw(0, "select", 1)
    found = [
        draw(0, "select", 1),
        draw(1, "select", 1),
        draw(0, "keep", 1),
        draw(0, "select", 2),
        draw(0, "select", 1, 0),
    ]
    assert len({tuple(values) for values in found}) == len(found)


def test_no_global_generator_is_used(untouched: None) -> None:
    rng.uniform(rng.keys(0, "batches", 1, np.arange(10)), 0, 10)
    torch.rand(3, generator=rng.generator(0, "select", 1))


def uniform(values: np.ndarray, cells: int) -> float:
    """The p-value of a chi-square test that numbers in [0, 1) fall evenly in the cells."""
    counts = np.bincount((values * cells).astype(int).ravel(), minlength=cells)
    return float(stats.chisquare(counts).pvalue)


@pytest.mark.parametrize("seed", [0, 1])
def test_draws_are_uniform(seed: int) -> None:
    """Along a stream, across clients, across rounds, and in pairs; a fixed seed, so this cannot fail by chance."""
    streams = rng.keys(seed, "batches", 1, np.arange(400))
    u = rng.uniform(streams, 0, 200)
    assert u.min() >= 0
    assert u.max() < 1
    assert uniform(u, 100) > 1e-3
    assert uniform(u[:, 0], 20) > 1e-3
    rounds = np.concatenate([rng.uniform(rng.keys(seed, "batches", t, np.array([0])), 0, 1) for t in range(400)])
    assert uniform(rounds, 20) > 1e-3
    pairs = (np.floor(u[:, :-1] * 10) * 10 + np.floor(u[:, 1:] * 10)) / 100
    assert uniform(pairs[:, ::2] + 0.005, 100) > 1e-3
    across = (np.floor(u[:-1] * 10) * 10 + np.floor(u[1:] * 10)) / 100
    assert uniform(across[::2] + 0.005, 100) > 1e-3
    assert abs(np.corrcoef(u[:, 0], u[:, 1])[0, 1]) < 0.2


def test_every_bit_is_used() -> None:
    bits = rng.bits(rng.keys(0, "x", 0, np.arange(64)), 0, 64).ravel()
    ones = np.array([((bits >> np.uint64(b)) & np.uint64(1)).mean() for b in range(64)])
    assert np.abs(ones - 0.5).max() < 5 * 0.5 / 64
