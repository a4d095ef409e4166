"""What a run is doing within a round, told now and then, so that a round of minutes shows that it lives."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

EVERY = 0.5  # seconds between two words, at least


@dataclass(frozen=True)
class Doing:
    """How far a run is within a round: 'training clients', 140 of 500."""

    round: int  # the round that is played; 0 before the first
    rounds: int  # of the whole run
    what: str
    done: float
    of: float

    @property
    def far(self) -> str:
        """What is done, and how much of it."""
        return f"{self.what}, {int(self.done):,} of {int(self.of):,} ({100 * self.done / max(self.of, 1):.0f} %)"

    def __str__(self) -> str:
        return f"round {self.round:,} of {self.rounds:,}: {self.far}" if self.round else f"before round 1: {self.far}"


class Pulse:
    """Passes on how far a run of so many rounds is, but not more often than every so many seconds.

    It is called after every step of every chunk of clients, and so must cost next to nothing when it passes nothing on.
    """

    def __init__(
        self,
        heard: Callable[[Doing], None],
        rounds: int,
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.heard, self.rounds, self.every, self.clock = heard, rounds, every, clock
        self.next = clock() + every
        self.at(0)

    def at(self, round: int, phase: str = "") -> None:
        """Note which round is played, and what for, where it is not for training: clients may train to be scored."""
        self.round, self.phase = round, phase

    def __call__(self, what: str, done: float, of: float) -> None:
        now = self.clock()
        if now >= self.next:
            self.next = now + self.every
            said = what if what.startswith(self.phase) else f"{self.phase}: {what}"
            self.heard(Doing(self.round, self.rounds, said, done, of))
