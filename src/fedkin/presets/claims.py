"""What a paper claims of its numbers, as predicates, and whether numbers with their spread bear a claim out.

A claim is a list of steps. A step says that one cell is above another one, by more than a margin. A claim holds if all
of its steps do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

Place = tuple[str, str]  # row and column
Repetitions = Mapping[int, float | None] | Sequence[float | None]  # the value of each repetition; None: no number
Values = Mapping[Place, Repetitions]

HOLDS, SHAPE, FAILS, OPEN = "holds", "holds in shape", "does not hold", "not decided by so few seeds"
NOT_RUN = "not run"
LEVEL = 0.05
SEEN = 0.005  # a mean that a table shows as zero is not above zero


@dataclass(frozen=True)
class Step:
    """The cell `high` is above the cell `low` by more than `margin`. Without `low` it is above the margin itself."""

    high: Place
    low: Place | None = None
    margin: float = 0.0


@dataclass(frozen=True)
class Claim:
    """A sentence, and the steps it consists of.

    `by` is "paper" for what the paper says, and "us" for what its readers would like to know. `steps` may be made from
    rows and columns by the functions below. With `missing="inf"` a cell without a number counts as infinite: a target
    that was not reached.
    """

    text: str
    steps: tuple[Step, ...]
    by: Literal["paper", "us"] = "paper"
    missing: Literal["open", "inf"] = "open"

    def places(self) -> Iterable[Place]:
        """Every cell that the claim speaks of."""
        for step in self.steps:
            yield step.high
            if step.low is not None:
                yield step.low


# how claims are made


def above(high: str, low: str | Sequence[str], columns: Sequence[str], margin: float = 0.0) -> tuple[Step, ...]:
    """One row is above another row, or above several ones, in each of these columns."""
    rows = [low] if isinstance(low, str) else list(low)
    return tuple(Step((high, column), (row, column), margin) for column in columns for row in rows)


def below(low: str, high: str | Sequence[str], columns: Sequence[str], margin: float = 0.0) -> tuple[Step, ...]:
    """One row is below another row, or below several ones, in each of these columns."""
    rows = [high] if isinstance(high, str) else list(high)
    return tuple(Step((row, column), (low, column), margin) for column in columns for row in rows)


def rises(rows: str | Sequence[str], columns: Sequence[str]) -> tuple[Step, ...]:
    """Each of these rows rises from column to column."""
    several = [rows] if isinstance(rows, str) else list(rows)
    return tuple(Step((row, later), (row, earlier)) for row in several for earlier, later in pairwise(columns))


def near(one: Place, other: Place, within: float) -> tuple[Step, ...]:
    """Two cells differ by less than `within`."""
    return Step(one, other, -within), Step(other, one, -within)


def positive(row: str, columns: Sequence[str], least: float = 0.0) -> tuple[Step, ...]:
    """A row, as one of differences, is above zero or above `least` in each of these columns."""
    return tuple(Step((row, column), margin=least) for column in columns)


# how claims are judged


def judged(claim: Claim, values: Values, overlap: float = 0.0) -> dict[str, Any]:
    """Judge a claim by the numbers of the cells, paired by repetition.

    holds: every step is significant (then their conjunction is, without a correction for their number).
    does not hold: some step is significantly contrary, after Bonferroni's correction for the number of steps.
    holds in shape: every mean is as claimed, and not all steps are significant. Otherwise it is not decided.
    A single repetition has no spread, so that nothing is significant. Steps whose cells were not run are left out and
    counted; a claim of which no step was run is not judged. `overlap` is for repetitions on splits of the same samples,
    which are not independent: the number of test samples over that of training samples.
    """
    steps = [step_result(step, values, claim.missing, overlap) for step in claim.steps]
    steps = [step for step in steps if step["repetitions"]]
    said = {"text": claim.text, "by": claim.by, "steps": steps, "of": len(claim.steps)}
    if not steps:
        return said | {"verdict": NOT_RUN}
    contrary = min((step["p_contrary"] for step in steps if step["p_contrary"] is not None), default=1.0)
    if all(step["p"] is not None and step["p"] < LEVEL for step in steps):
        verdict = HOLDS
    elif contrary * len(steps) < LEVEL:
        verdict = FAILS
    elif all(step["side"] > 0 for step in steps):
        verdict = SHAPE
    else:
        verdict = OPEN
    return said | {"verdict": verdict}


def step_result(step: Step, values: Values, missing: str, overlap: float = 0.0) -> dict[str, Any]:
    """Return the mean difference of a step beyond its margin, its side (1, 0 or -1), and the p of the claim and of its
    contrary. Where a target was not reached in some repetition, only signs count, and there is no mean difference."""
    both = paired(values[step.high], None if step.low is None else values[step.low], missing)
    found = both - step.margin
    said: dict[str, Any] = {"high": list(step.high), "low": step.low and list(step.low), "margin": step.margin}
    said |= {"repetitions": len(found)}
    known = found[~np.isnan(found)]
    if not len(known):
        return said | {"difference": None, "side": 0, "p": None, "p_contrary": None}
    if np.isinf(known).any():
        p, contrary = signs(known)
        return said | {"difference": None, "side": int(np.sign(np.sign(known).sum())), "p": p, "p_contrary": contrary}
    p, contrary = one_sided(known, overlap)
    mean = float(known.mean())
    return said | {"difference": mean, "side": int(mean > SEEN) - int(mean < -SEEN), "p": p, "p_contrary": contrary}


def paired(high: Repetitions, low: Repetitions | None, missing: str) -> np.ndarray:
    """The differences of two cells in the repetitions that both have; the values themselves without a lower cell."""
    above, under = numbered(high), None if low is None else numbered(low)
    gap = np.inf if missing == "inf" else np.nan
    shared = [k for k in above if under is None or k in under]
    upper = np.array([gap if above[k] is None else above[k] for k in shared], dtype=float)
    lower = np.zeros(len(shared))
    if under is not None:
        lower = np.array([gap if under[k] is None else under[k] for k in shared], dtype=float)
    with np.errstate(invalid="ignore"):  # infinite minus infinite
        return np.asarray(upper - lower)


def numbered(values: Repetitions) -> dict[int, float | None]:
    """Values by repetition; those in a list are of the repetitions 0, 1, 2, ..."""
    return dict(values) if isinstance(values, Mapping) else dict(enumerate(values))


def signs(differences: np.ndarray) -> tuple[float | None, float | None]:
    """Return the p of the sign test that differences are above zero, and that they are below; None for one value."""
    from scipy import stats  # takes a second to import

    if len(differences) < 2:
        return None, None
    n, up, down = len(differences), int((differences > 0).sum()), int((differences < 0).sum())
    return float(stats.binom.sf(up - 1, n, 0.5)), float(stats.binom.sf(down - 1, n, 0.5))


def one_sided(differences: np.ndarray, overlap: float = 0.0) -> tuple[float | None, float | None]:
    """Return the p of Student's paired test that the mean is above zero, and that it is below; None for one value.

    Splits of the same samples overlap: with `overlap` the variance has Nadeau and Bengio's correction (2003).
    """
    from scipy import stats  # takes a second to import

    n = len(differences)
    if n < 2:
        return None, None
    mean, error = float(differences.mean()), float(differences.std(ddof=1)) * np.sqrt(1 / n + overlap)
    if error < 1e-12:
        return (0.0, 1.0) if mean > 1e-12 else (1.0, 0.0) if mean < -1e-12 else (0.5, 0.5)
    p = float(stats.t.sf(mean / error, n - 1))
    return p, 1.0 - p
