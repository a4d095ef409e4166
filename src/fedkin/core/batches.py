"""Plans which samples each client uses in each batch of a round.

A plan has positions in a client's own list of samples, drawn from the stream (seed, "batches", round, client). Where a
step takes several batches, they may each come from a stream of their own: then the first batches of all steps are those
of a method that takes one batch a step. Only the plan is padded, never the data: a batch that is shorter than the
plan's width is filled with the client's first sample, which counts with weight 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedkin.core import rng


@dataclass(frozen=True)
class Plan:
    """The batches of some clients. `rows[i, k]` is batch k of client i; its first `count[i, k]` samples are real."""

    rows: np.ndarray  # (m, K, width) int64
    count: np.ndarray  # (m, K) int64; 0 beyond the client's own number of batches
    batches: np.ndarray  # (m,) int64, the number of each client's batches

    @property
    def full(self) -> np.ndarray:
        """For each client and batch, whether all samples of the batch are real."""  # (m, K) bool
        full: np.ndarray = self.count == self.rows.shape[2]
        return full


def number(sizes: np.ndarray, batch: int, steps: int | None, epochs: int | None) -> np.ndarray:
    """How many steps each client takes in a round, however many batches a step takes.

    It is `steps` if that is given. Otherwise it is `epochs` times the number of batches in an epoch.
    """  # (m,) int64
    if steps is not None:
        return np.full(len(sizes), steps, dtype=np.int64)
    assert epochs is not None
    found: np.ndarray = epochs * -(-sizes // batch)
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
    beside: Sequence[np.ndarray] = (),
) -> Plan:
    """The plan of these clients' batches in this round, with `per_step` batches for every step.

    `sizes` has the clients' numbers of samples, and `streams` the keys of their random streams. The sampler "fresh"
    draws each batch independently if `steps` is given, and shuffles every epoch if `epochs` is given. The sampler
    "cyclic" goes through the samples in their own order.

    `beside` has the keys of further streams, one for the second, third, ... batch of a step each: each of them has its
    own draws and its own shuffles, and in cyclic order it is one batch further than the one before. Without them the
    batches of a step follow each other in the one stream, which needs `steps`.
    """
    taken = number(sizes, batch, steps, epochs)
    if beside:
        assert len(beside) == per_step - 1
        every = enumerate((streams, *beside))
        each = [drawn(sizes, keys, round, batch, taken, steps is None, sampler, b) for b, keys in every]
        rows = np.stack([rows for rows, _ in each], 2)  # (m, K, per_step, width)
        count = np.stack([count for _, count in each], 2)
        return Plan(rows.reshape(len(sizes), -1, rows.shape[3]), count.reshape(len(sizes), -1), taken * per_step)
    assert per_step == 1 or steps is not None
    wanted = taken * per_step
    return Plan(*drawn(sizes, streams, round, batch, wanted, steps is None, sampler), wanted)


def drawn(
    sizes: np.ndarray,
    streams: np.ndarray,
    round: int,
    batch: int,
    wanted: np.ndarray,
    by_epoch: bool,
    sampler: str,
    ahead: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """The rows and counts of as many batches as each client wants, from one stream."""
    width = int(min(batch, sizes.max()))
    if sampler == "cyclic":
        return cyclic(sizes, round, width, batch, wanted, ahead)
    if by_epoch:
        return shuffled(sizes, streams, width, batch, wanted)
    return fresh(sizes, streams, width, int(wanted[0]))


def fresh(sizes: np.ndarray, streams: np.ndarray, width: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw each batch uniformly without replacement, by Floyd's algorithm, for all clients and batches at once."""
    m = len(sizes)
    u = rng.uniform(streams, 0, number * width).reshape(m * number, width).T.copy()  # (width, batches)
    count = np.repeat(np.minimum(sizes, width)[:, None], number, axis=1)
    first = np.repeat(np.maximum(sizes - width, 0), number)  # (batches,)
    picks = np.zeros((width, m * number), dtype=np.int64 if sizes.max() > 2**30 else np.int32)
    for j in range(width):
        last = first + j  # pick j is one of 0 .. last; a repeated pick becomes `last`, which no earlier pick can be
        pick = (u[j] * (last + 1)).astype(picks.dtype)
        seen = (picks[:j] == pick).any(0)
        picks[j] = np.where(seen, last, pick)
    rows = np.ascontiguousarray(picks.T, dtype=np.int64).reshape(m, number, width)
    short = sizes <= width
    if short.any():  # a client with no more samples than a batch uses all of them, in order
        rows[short] = np.where(np.arange(width) < sizes[short, None, None], np.arange(width), 0)
    return rows, count


def shuffled(
    sizes: np.ndarray, streams: np.ndarray, width: int, batch: int, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Shuffle the samples in every epoch and cut them into batches. The last batch of an epoch may be short.

    A client goes through as many epochs as its `wanted` number of batches needs.
    """
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


def cyclic(
    sizes: np.ndarray, round: int, width: int, batch: int, wanted: np.ndarray, ahead: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Take batches from a fixed, unshuffled list. A round continues where the last one ended, as in pFedMe's code.

    The first batch of all is number `ahead` of the list.
    """
    most = int(wanted.max())
    k = np.arange(most)[None, :]  # (1, K)
    batches = -(-sizes // batch)[:, None]  # (m, 1)
    start = (ahead + (round - 1) * wanted[:, None] + k) % batches * batch  # (m, K)
    count = np.where(k < wanted[:, None], np.minimum(batch, sizes[:, None] - start), 0)
    rows = start[:, :, None] + np.arange(width)
    return np.where(np.arange(width) < count[:, :, None], rows, 0), count
