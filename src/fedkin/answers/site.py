"""The answer for one site: join, stay alone, no clear difference, or too few test rows to tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fedkin.answers.bootstrap import Gain

Verdict = Literal["join", "stay alone", "no clear difference", "too few test rows to tell"]
JOIN: Verdict = "join"
ALONE: Verdict = "stay alone"
UNCLEAR: Verdict = "no clear difference"
FEW: Verdict = "too few test rows to tell"

FEWEST_ROWS = 10  # test rows below which nothing is said: even if every third prediction changed, 5 % is out of reach
LITTLE = 0.02  # a gain of a share that is too small to join for
WIDEST = 0.15  # half an interval of a share; a wider one with 0 inside would miss a gain of 15 points half of the time


@dataclass(frozen=True)
class Answer:
    """What one site should do, and how sure that is. Gains are positive where joining is better."""

    site: str
    verdict: Verdict
    rows: int  # different test rows, of all splits
    rarer: int | None = None  # of them those of rarer classes, where the metric depends on them
    method: str | None = None  # the best one; None where nothing can be compared
    against: str | None = None  # the Local that it is compared with
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    kin: tuple[str, ...] = ()
    kin_from: str | None = None  # the method that says so
    left_out_by: tuple[str, ...] = ()  # filters that left this site out
    opinions: int = 0  # filters that were asked
    looks: str | None = None  # "mislabelled" or "different"
    better_alone: str | None = None  # a Local with another budget that reaches more than the method

    def as_json(self, methods: Mapping[str, Gain]) -> dict[str, Any]:
        """Return the answer as JSON, with the gains of all methods."""
        return asdict(self) | {"methods": {name: asdict(gain) for name, gain in methods.items()}}


def best_of(gains: Mapping[str, Gain], reached: Mapping[str, float]) -> str:
    """Return the best method: of those that are surely better than alone the one that reaches most, else the one with
    the largest gain. `reached` has the metric of every arm, larger is better. Methods have different Locals, so the
    largest gain may be one over a Local that is merely weak."""
    sure = [name for name, found in gains.items() if found.low > 0]
    return max(sure, key=lambda name: reached[name]) if sure else max(gains, key=lambda name: gains[name].gain)


def verdict_on(gain: Gain | None, rows: int, percent: bool = True) -> Verdict:
    """Return the verdict on the best method's gain at a site with so many test rows."""
    if gain is None or rows < FEWEST_ROWS:
        return FEW
    if gain.low > 0:
        return JOIN
    if gain.high < 0:
        return ALONE
    if percent and gain.half > WIDEST:
        return FEW
    return ALONE if percent and gain.gain <= 0 and gain.high < LITTLE else UNCLEAR


def decided(
    site: str,
    rows: int,
    gains: Mapping[str, Gain],
    reached: Mapping[str, float],
    against: Mapping[str, str],
    percent: bool,
    rarer: int | None = None,
) -> Answer:
    """Return the answer for a site from the gains of all methods there, and what every arm reaches, larger is
    better. Where rows of rarer classes decide the metric, there must be enough of them."""
    if not gains:
        return Answer(site, FEW, rows, rarer)
    best = best_of(gains, reached)
    found = gains[best]
    verdict = verdict_on(found, rows if rarer is None else rarer, percent)
    alone = max((name for name in set(against.values()) if name in reached), key=lambda name: (reached[name], name))
    more = alone if verdict == JOIN and reached[alone] > reached[best] else None
    return Answer(site, verdict, rows, rarer, best, against[best], found.gain, found.low, found.high, better_alone=more)
