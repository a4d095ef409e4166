"""With whom a site learns: the others whose models count most in what it was sent."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fedkin.runs.run import Run

MOST = 3  # kin that are named
ABOVE = 1.25  # times an even spread over the others, from which another client is kin: a little more is no preference
MANY = 5000  # clients above which nobody's kin are named: a matrix of all pairs would take hundreds of megabytes
LATE = 4  # the last one of so many parts of the stored rounds counts


def mean_weights(runs: Iterable[Run]) -> np.ndarray | None:
    """Return how much each client took from each other one, (n, n) with zeros on the diagonal: the mean over
    components, over the last quarter of the stored rounds and over runs. None where nobody gets a mixture of its own,
    and where there are so many clients that not all weights were stored.
    """
    total, seen = None, None
    for run in runs:
        stored = run.kin() if run.n <= MANY else {}
        rounds = sorted(r for r, kin in stored.items() if not kin.nearest)
        if not rounds:
            continue
        if total is None or seen is None:
            total, seen = np.zeros((run.n, run.n)), np.zeros((run.n, run.n))
        for r in rounds[-max(1, len(rounds) // LATE) :]:
            kin = stored[r]
            weights = np.mean([value.double().numpy() for value in kin.weights.values()], axis=0)  # (m, s)
            at = np.ix_(kin.ids.numpy(), kin.sources.numpy())
            total[at] += weights
            seen[at] += 1
    if total is None or seen is None:
        return None
    mean = np.divide(total, seen, out=np.zeros_like(total), where=seen > 0)
    np.fill_diagonal(mean, 0.0)
    return mean


def kin_of(weights: np.ndarray, client: int) -> list[int]:
    """Return the clients that this one learns from above an even spread over all others, the closest first."""
    row = weights[client]
    others = len(row) - 1
    if others < 1 or row.sum() <= 0:
        return []
    order = np.argsort(-row, kind="stable")[:MOST]
    return [int(other) for other in order if row[other] > ABOVE * row.sum() / others]
