"""How sure a site's gain is: intervals by bootstrap over test rows, splits and seeds, for all methods together.

A replicate draws each site's test rows with replacement once, by their identity: a patient who is tested on several
splits has the same weight on all of them. Drawing rows anew on every split would count the noise of the same patients
as independent, and ten splits would seem to be worth ten times the patients. Splits and seeds are drawn with
replacement as well. docs/decisions/0011 has the reasons and the measured coverage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedkin import metrics
from fedkin.answers.held_out import HeldOut

LEVEL = 0.95  # of the intervals: all methods of a site are covered together in this share of cases
NORMAL = 1.959964  # the normal quantile of that level, two-sided
REPLICATES = 2000
FEWEST = 400  # replicates, however many sites there are
FEW_SPLITS = 2.2  # times that deviations of splits are widened at most, as for three of them
WORK = 5e9  # replicates times distinct rows times runs that all sites together may take: a few seconds


@dataclass(frozen=True)
class Gain:
    """What a site gains by a method over training alone, positive is better, with the ends of its interval."""

    gain: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


def replicates(sites: list[HeldOut]) -> int:
    """Return how many replicates these sites get, so that many sites take seconds and not minutes."""
    work = sum(sum(map(len, site.outputs.values())) * len(site.rows) * len(site.distinct) for site in sites)
    return int(max(FEWEST, min(REPLICATES, WORK / max(1, work))))


def gains(
    site: HeldOut, against: Mapping[str, str], metric: str, generator: np.random.Generator, count: int = REPLICATES
) -> dict[str, Gain]:
    """Return each method's gain over the Local it is compared with (`against`), with simultaneous intervals.

    The interval of a method is its gain plus and minus q standard errors, where q is the quantile of the largest
    studentised deviation over all methods. So the intervals hold for all methods at once, and also for the one that is
    chosen because it looks best. A method whose gain is not defined at this site is left out.
    """
    arms, rows = list(site.outputs), len(site.distinct)
    if not rows or not against:
        return {}
    better = metrics.METRICS[metric].gain
    theirs, alone = ([arms.index(name) for name in side] for side in (against, against.values()))

    def differences(values: np.ndarray) -> np.ndarray:
        return np.asarray(better(values[:, theirs], values[:, alone]))

    found = differences(site.values(metric))[0]  # (methods, seeds, splits)
    found = np.asarray(np.where(np.isfinite(found), found, np.nan))  # a loss may be infinite
    known: np.ndarray = np.isfinite(found).any((1, 2))
    names = [name for name, good in zip(against, known, strict=True) if good]
    if not names:
        return {}
    found = found[known]
    middle = np.nanmean(found, axis=(1, 2))  # (methods,)
    found = np.where(np.isfinite(found), found, middle[:, None, None])
    drawn = counts(rows, count, generator)
    again = differences(site.values(metric, drawn))[:, known]
    again = np.where(np.isfinite(again), again, found)  # a draw without some class says nothing new
    deviation = again.mean((2, 3)) - middle  # (b, methods)
    for axis in (1, 2):  # seeds, splits
        deviation = deviation + drawn_again(found.mean(3 - axis), again.mean(4 - axis), generator)
    return intervals(names, middle, deviation, rows, metrics.METRICS[metric].percent)


def counts(rows: int, count: int, generator: np.random.Generator) -> np.ndarray:
    """Return how often each row is drawn in every replicate."""  # (b, rows)
    drawn = generator.integers(0, rows, (count, rows)) + rows * np.arange(count)[:, None]
    return np.bincount(drawn.ravel(), minlength=count * rows).reshape(count, rows).astype(np.float32)


def drawn_again(found: np.ndarray, again: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return the deviations that come from drawing the splits, or the seeds, with replacement.

    found: the gain on each of them, (methods, number); again: the same in every replicate of rows, (b, methods,
    number). Gains differ between splits also because other rows are tested. The replicates of rows have that noise
    already, so only what splits differ beyond it is added: all else would count it twice.
    """  # (b, methods)
    from scipy import stats

    count, number = len(again), found.shape[1]
    if number == 1:
        return np.zeros((count, len(found)))
    centred = again - again.mean(0)
    alone = (centred**2).mean((0, 2))  # the noise of rows on one split ...
    together = (centred.mean(2) ** 2).mean(0)  # ... and in the mean of all
    by_rows = (alone - together) * number / (number - 1)  # how much rows alone make splits differ
    variance = found.var(1, ddof=1)
    beyond = np.maximum(0.0, variance - by_rows)
    factor = np.sqrt(np.divide(beyond, variance, out=np.zeros_like(variance), where=variance > 0))
    weights = generator.multinomial(number, np.full(number, 1 / number), count) - 1.0
    weights *= float(np.sqrt(number / (number - 1)))  # a plain draw has too little variance for two or three ...
    weights *= min(FEW_SPLITS, float(stats.t.ppf((1 + LEVEL) / 2, number - 1)) / NORMAL)  # ... and it is a guess then
    drawn: np.ndarray = weights @ found.T / number * factor
    return drawn


def intervals(names: list[str], middle: np.ndarray, deviation: np.ndarray, rows: int, percent: bool) -> dict[str, Gain]:
    """Return the gains with simultaneous intervals from the deviations of the replicates, (b, methods)."""
    from scipy import stats

    error = np.sqrt((deviation**2).mean(0))
    varied = error > 0
    q = NORMAL
    if varied.any():
        q = max(q, float(np.quantile((np.abs(deviation[:, varied]) / error[varied]).max(1), LEVEL)))
    few = float(stats.t.ppf((1 + LEVEL) / 2, max(1, rows - 1))) / NORMAL  # the error itself is estimated from few rows
    floor = 2 / (rows + 2) ** 2 if percent else 0.0  # as if one more row had gone each way (Bonett and Price 2012)
    half = q * few * np.sqrt(error**2 + floor)
    most = 1.0 if percent else np.inf  # no share gains more
    low, high = np.maximum(middle - half, -most), np.minimum(middle + half, most)
    ends = zip(names, middle.tolist(), low.tolist(), high.tolist(), strict=True)
    return {name: Gain(gain, first, last) for name, gain, first, last in ends}
