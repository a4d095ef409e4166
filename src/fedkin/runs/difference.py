"""How large a mean difference between two arms is, and how sure: over blocks of runs (seeds) and over clients.

The mean, its interval and p come from one statistic, so that they cannot contradict each other. docs/statistics.md has
the rule in words, docs/decisions/0015-statistics.md the reasons and how often it errs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from math import exp, inf, isfinite, log, sqrt
from typing import Any

import numpy as np

from fedkin.errors import require

LEVEL = 0.05  # of a test that calls a difference clear
SMALLEST = 1e-100  # the least p that is told
FILLED = 50  # times that missing values are filled in again from the means that they change


@dataclass(frozen=True)
class Difference:
    """A mean difference, positive where the first arm has more, with its 95 % interval and p.

    With one block the interval and p are over clients only: they say nothing of how another seed would end.
    """

    mean: float
    low: float
    high: float
    p: float
    blocks: int  # that differ by chance, as seeds do
    clients: int

    def as_json(self) -> dict[str, Any]:
        """Return the numbers; an end of the interval that is not known is None."""
        return {name: value if isfinite(value) else None for name, value in asdict(self).items()}


def difference(
    a: np.ndarray, b: np.ndarray | None = None, blocks: Sequence[Hashable] | None = None, level: float = LEVEL
) -> Difference:
    """Return the mean difference a - b with its interval and p.

    `a` and `b` are scores of two arms in the same runs, a row each, and of the same clients, a column each; or one
    number a run. Without `b`, `a` has the differences already. `blocks` says which rows go together, for example the
    seeds of runs on several splits: rows of one block are averaged, and blocks must be independent of each other. By
    default each row is a block. A value that is nan is not known; a client that has none at all is left out.

    Half the interval is the root of h1^2 + h2^2: h1 is that of a t interval over the means of blocks, h2 that of one
    over the means of clients. p is the level at which this interval would begin at zero. So a difference is clear only
    where it is clear for other seeds and for other clients; what there is only one of is left out.
    """
    values = np.asarray(a, dtype=float) if b is None else np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    require(values.ndim in (1, 2) and values.size, "A difference needs a row a run and a column a client.")
    grid = complete(by_block(values.reshape(len(values), -1), blocks))
    if not grid.size:
        return Difference(0.0, -inf, inf, 1.0, 0, 0)
    mean, (rows, columns) = float(grid.mean()), grid.shape
    parts = [
        (number - 1, float(means.var(ddof=1)) / number)
        for number, means in ((rows, grid.mean(1)), (columns, grid.mean(0)))
        if number > 1
    ]
    half = half_width(level, parts)
    return Difference(mean, mean - half, mean + half, p_value(mean, parts), rows, columns)


def by_block(values: np.ndarray, blocks: Sequence[Hashable] | None) -> np.ndarray:
    """Return the means of the rows of each block; nan where a client has no value in a block."""  # (blocks, clients)
    labels = list(range(len(values)) if blocks is None else blocks)
    require(len(labels) == len(values), f"There are {len(labels)} blocks for {len(values)} runs; each run has one.")
    rows = [[i for i, label in enumerate(labels) if label == one] for one in dict.fromkeys(labels)]
    return np.stack([mean_of_known(values[several], 0) for several in rows])


def mean_of_known(values: np.ndarray, axis: int) -> np.ndarray:
    """Return means of the values that are not nan; nan where there are none."""
    known = ~np.isnan(values)
    count = known.sum(axis)
    total = np.where(known, values, 0.0).sum(axis)
    means: np.ndarray = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return means


def complete(values: np.ndarray) -> np.ndarray:
    """Return the grid without clients and blocks that have no value, and with any other missing one filled in.

    A client that is not known in a block gets its own mean, moved by as much as the block moves the others.
    """
    known = ~np.isnan(values)
    values = values[known.any(1)][:, known.any(0)]
    missing = np.isnan(values)
    found: np.ndarray = np.where(missing, mean_of_known(values, 0), values)
    for _ in range(FILLED if missing.any() else 0):
        found = np.where(missing, found.mean(0) + found.mean(1)[:, None] - found.mean(), values)
    return found


def half_width(level: float, parts: Sequence[tuple[int, float]]) -> float:
    """Return half the interval of this level; `parts` are degrees of freedom and squared standard errors."""
    from scipy.special import stdtrit  # takes a while to import, and only a comparison needs it

    return sqrt(sum(float(stdtrit(freedom, level / 2)) ** 2 * error for freedom, error in parts)) if parts else inf


def p_value(mean: float, parts: Sequence[tuple[int, float]]) -> float:
    """Return the level at which the interval begins at zero."""
    from scipy.optimize import brentq

    if mean == 0 or not parts:
        return 1.0

    def beyond(logarithm: float) -> float:
        return half_width(exp(logarithm), parts) - abs(mean)

    least = log(SMALLEST)
    return SMALLEST if beyond(least) <= 0 else float(exp(brentq(beyond, least, 0.0, xtol=1e-9)))


def holm(values: Sequence[float]) -> list[float]:
    """Return p values corrected after Holm: if each below 5 % is called clear, some false one is among them in at most
    5 % of tables. A p that is nan counts as 1."""
    known = [1.0 if value != value else float(value) for value in values]
    found, largest = [1.0] * len(known), 0.0
    for rank, i in enumerate(sorted(range(len(known)), key=known.__getitem__)):
        largest = max(largest, min(1.0, (len(known) - rank) * known[i]))
        found[i] = largest
    return found
