"""How many clients take part: a fraction of the clients for each round."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Annotated

from fedkin.contract import Needs
from fedkin.errors import require
from fedkin.fields import Rule
from fedkin.parts import Part

ClientFraction = Annotated[
    float,
    Rule(
        lambda v: isinstance(v, int | float) and not isinstance(v, bool),
        "A fraction of the clients is a number, not {value!r}.",
    ),
    Rule(
        lambda v: 0 < v <= 1,
        "A fraction of the clients must be above 0 and at most 1, not {value}.",
        "above 0 and at most 1",
    ),
]
Levels = Annotated[int, Rule(lambda v: v >= 1, "A schedule has at least one level, not {value}.", "of at least 1")]
Fractions = Annotated[
    tuple[ClientFraction, ...], Rule(bool, "A schedule needs at least one fraction.", "of at least one fraction")
]


def whole(fraction: float, n: int) -> int:
    """K = round_half_up(fraction n), at least 1 and at most n; the small term mends 0.29 * 100 = 28.999... (A-D2)."""
    return min(n, max(1, floor(fraction * n + 0.5 + 1e-9)))


class Schedule(Part):
    """A fraction of the clients for each round of a run. It needs the number of rounds if it depends on that number."""

    def at(self, round: int, rounds: int) -> float:
        """The fraction in this round of a run with so many rounds. Rounds count from 1."""
        raise TypeError(f"{type(self).__name__} does not say how many take part")


@dataclass(frozen=True)
class Constant(Schedule):
    """The same fraction in every round."""

    fraction: ClientFraction = 0.1  # the share of the clients that takes part

    def at(self, round: int, rounds: int) -> float:
        return self.fraction


@dataclass(frozen=True)
class Steps(Schedule):
    """AdaFL's dynamic fraction: `levels` equal steps from `start` to `end`, each for rounds / levels rounds (A-D3)."""

    start: ClientFraction = 0.1  # the share of the clients in the first rounds
    end: ClientFraction = 0.5  # the share of the clients in the last rounds
    levels: Levels = 5  # how many different shares there are, equally far apart

    def check(self) -> None:
        require(self.end >= self.start, f"A schedule may not decrease, but goes from {self.start} to {self.end}.")
        require(self.levels > 1 or self.start == self.end, "A schedule of one level starts where it ends; add levels.")

    @property
    def needs(self) -> Needs:
        return Needs(rounds=True)

    def at(self, round: int, rounds: int) -> float:
        level = min(self.levels - 1, (round - 1) * self.levels // rounds)
        return self.start + (self.end - self.start) / max(1, self.levels - 1) * level


@dataclass(frozen=True)
class Listed(Schedule):
    """One fraction for each round, as listed. The last one is used for all further rounds."""

    fractions: Fractions = (0.1,)  # the share of the clients in each round; the last one for all further rounds

    def check(self) -> None:
        rises = all(a <= b for a, b in zip(self.fractions, self.fractions[1:], strict=False))
        require(rises, "A schedule may not decrease.")

    def at(self, round: int, rounds: int) -> float:
        return self.fractions[min(round, len(self.fractions)) - 1]


def scheduled(fraction: float | Schedule) -> Schedule:
    """A schedule as it is, and a number as a constant schedule."""
    return fraction if isinstance(fraction, Schedule) else Constant(float(fraction))


def cost(schedule: Schedule, n: int, rounds: int, until: int) -> int:
    """Model uploads in rounds 1 to `until`, both included, of a run of `rounds`."""
    return sum(whole(schedule.at(t, rounds), n) for t in range(1, until + 1))
