"""Which samples a client uses, and when: the plan of a round's batches.

A plan is made of positions in a client's own list, drawn from the stream of (seed, "batches", round, client). Only the
plan is padded, never the data: a batch shorter than the plan is wide repeats its client's first sample with weight 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedkin.core import rng


@dataclass(frozen=True)
class Plan:
    """`rows[i, k]` are the samples of client i's batch k, of which the first `count[i, k]` are real."""

    rows: np.ndarray  # (m, K, width) int64
    count: np.ndarray  # (m, K) int64; 0 beyond the client's own number of batches
    batches: np.ndarray  # (m,) int64

    @property
    def full(self) -> np.ndarray:
        """Whether the client's batch k is as long as the plan is wide."""  # (m, K) bool
        full: np.ndarray = self.count == self.rows.shape[2]
        return full


def number(sizes: np.ndarray, batch: int, steps: int | None, epochs: int | None, per_step: int = 1) -> np.ndarray:
    """Steps each client takes in a round."""  # (m,) int64
    if steps is not None:
        return np.full(len(sizes), steps, dtype=np.int64)
    assert epochs is not None
    found: np.ndarray = np.maximum(1, epochs * -(-sizes // batch) // per_step)
    return found


def planned(
    sizes: np.ndarray,
    streams: np.ndarray,
    round: int,
    batch: int,
    steps: int | None,
    epochs: int | None,
    sampler: str = "fresh",
    per_step: int = 1,
) -> Plan:
    """The batches of these clients in this round: `per_step` of them for every step."""
    wanted = number(sizes, batch, steps, epochs, per_step) * per_step
    width = int(min(batch, sizes.max()))
    if sampler == "cyclic":
        rows, count = cyclic(sizes, round, width, batch, wanted)
    elif steps is not None:
        rows, count = fresh(sizes, streams, width, int(wanted[0]))
    else:
        rows, count = shuffled(sizes, streams, width, batch, wanted)
    return Plan(rows, count, wanted)


def fresh(sizes: np.ndarray, streams: np.ndarray, width: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Each batch uniformly without replacement: Floyd's algorithm, for all clients and batches at once."""
    m = len(sizes)
    u = rng.uniform(streams, 0, number * width).reshape(m, number, width)
    count = np.repeat(np.minimum(sizes, width)[:, None], number, axis=1)
    first = np.maximum(sizes - width, 0)[:, None]  # (m, 1)
    rows = np.zeros((m, number, width), dtype=np.int64)
    for j in range(width):
        last = first + j  # the j-th pick is among 0 .. last; a repeated one becomes `last`, which cannot be there yet
        pick = (u[:, :, j] * (last + 1)).astype(np.int64)
        seen = (rows[:, :, :j] == pick[:, :, None]).any(2)
        rows[:, :, j] = np.where(seen, last, pick)
    short = sizes <= width
    if short.any():  # a client with no more samples than a batch uses all of them, in order
        rows[short] = np.where(np.arange(width) < sizes[short, None, None], np.arange(width), 0)
    return rows, count


def shuffled(
    sizes: np.ndarray, streams: np.ndarray, width: int, batch: int, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Every epoch a new order, cut in batches; the last may be short and is used. As many epochs as `wanted` needs: one
    more than asked for, where a step takes several batches and an epoch has fewer."""
    m, most = len(sizes), int(wanted.max())
    rows = np.zeros((m, most, width), dtype=np.int64)
    count = np.zeros((m, most), dtype=np.int64)
    for i, n in enumerate(sizes.tolist()):
        epochs = -(-int(wanted[i]) // -(-n // batch))
        orders = np.argsort(rng.bits(streams[i : i + 1], 0, epochs * n).reshape(epochs, n), axis=1, kind="stable")
        lengths = np.tile(np.minimum(batch, n - np.arange(0, n, batch)), epochs)[: wanted[i]]
        padded = np.zeros((epochs, -(-n // batch) * batch), dtype=np.int64)
        padded[:, :n] = orders
        cut = padded.reshape(-1, batch)[: wanted[i], :width]
        rows[i, : len(cut)], count[i, : len(cut)] = cut, lengths
    return rows, count


def cyclic(sizes: np.ndarray, round: int, width: int, batch: int, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A fixed, unshuffled list of batches, gone on with from round to round (as pFedMe's code does)."""
    most = int(wanted.max())
    k = np.arange(most)[None, :]  # (1, K)
    batches = -(-sizes // batch)[:, None]  # (m, 1)
    start = ((round - 1) * wanted[:, None] + k) % batches * batch  # (m, K)
    count = np.where(k < wanted[:, None], np.minimum(batch, sizes[:, None] - start), 0)
    rows = start[:, :, None] + np.arange(width)
    return np.where(np.arange(width) < count[:, :, None], rows, 0), count
