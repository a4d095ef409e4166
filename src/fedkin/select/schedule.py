"""How many clients take part: a share of them, by round."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import ClassVar

from fedkin.errors import require
from fedkin.parts import Part


def whole(fraction: float, n: int) -> int:
    """K = round_half_up(fraction n), at least 1 and at most n; the small term mends 0.29 * 100 = 28.999... (A-D2)."""
    return min(n, max(1, floor(fraction * n + 0.5 + 1e-9)))


class Schedule(Part):
    """A fraction for each round of a run."""

    extends: ClassVar[bool] = True  # False where it depends on the number of rounds

    def at(self, round: int, rounds: int) -> float:
        raise TypeError(f"{type(self).__name__} does not say how many take part")


@dataclass(frozen=True)
class Constant(Schedule):
    fraction: float = 0.1

    def __post_init__(self) -> None:
        fair(self.fraction)

    def at(self, round: int, rounds: int) -> float:
        return self.fraction


@dataclass(frozen=True)
class Steps(Schedule):
    """AdaFL's dynamic fraction: `levels` equal steps from `start` to `end`, each for rounds / levels rounds (A-D3)."""

    extends: ClassVar[bool] = False

    start: float = 0.1
    end: float = 0.5
    levels: int = 5

    def __post_init__(self) -> None:
        fair(self.start)
        fair(self.end)
        require(self.levels >= 1, f"A schedule has at least one level, not {self.levels}.")
        require(self.end >= self.start, f"A schedule may not decrease, but goes from {self.start} to {self.end}.")
        require(self.levels > 1 or self.start == self.end, "A schedule of one level starts where it ends; add levels.")

    def at(self, round: int, rounds: int) -> float:
        level = min(self.levels - 1, (round - 1) * self.levels // rounds)
        return self.start + (self.end - self.start) / max(1, self.levels - 1) * level


@dataclass(frozen=True)
class Listed(Schedule):
    """A fraction for every round, as it stands here; the last one goes on."""

    fractions: tuple[float, ...] = (0.1,)

    def __post_init__(self) -> None:
        require(self.fractions, "A schedule needs at least one fraction.")
        for fraction in self.fractions:
            fair(fraction)
        rises = all(a <= b for a, b in zip(self.fractions, self.fractions[1:], strict=False))
        require(rises, "A schedule may not decrease.")

    def at(self, round: int, rounds: int) -> float:
        return self.fractions[min(round, len(self.fractions)) - 1]


def fair(fraction: float) -> None:
    number = isinstance(fraction, int | float) and not isinstance(fraction, bool)
    require(number, f"A fraction of the clients is a number, not {fraction!r}.")
    require(0 < fraction <= 1, f"A fraction of the clients must be above 0 and at most 1, not {fraction}.")


def scheduled(fraction: float | Schedule) -> Schedule:
    return fraction if isinstance(fraction, Schedule) else Constant(float(fraction))


def cost(schedule: Schedule, n: int, rounds: int, until: int) -> int:
    """Model uploads in rounds 1 to `until`, both included, of a run of `rounds`."""
    return sum(whole(schedule.at(t, rounds), n) for t in range(1, until + 1))
