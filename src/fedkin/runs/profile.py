"""Where the time of a run went, as a table that sums to the whole.

print(fk.run(experiment, profile=True).profile)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import get_ident
from time import perf_counter
from typing import Any

DATA, NETWORK, ACTORS = "start-up: data", "start-up: network", "start-up: actors"  # the last with the engine ray only
TRAINING, BATCHES = "training steps", "batches"
SCORING, RECORD, CHECKPOINTS, ENDING, REST = "scoring", "record", "checkpoints", "ending", "rest"
ONCE = (DATA, NETWORK, ACTORS, ENDING)  # rows that a run has once, whatever its number of rounds
ROWS = (DATA, NETWORK, "selection", "mixing", TRAINING, BATCHES, "keep", SCORING, RECORD, CHECKPOINTS, ENDING, REST)


@dataclass(frozen=True)
class Profile:
    """The seconds of a run by what they were spent on, and the rounds that were played in them."""

    seconds: dict[str, float]  # by row
    rounds: int

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    def since(self, seconds: float) -> Profile:
        """Return the profile with so many seconds more of getting at the data, before the run began."""
        return replace(self, seconds=self.seconds | {DATA: self.seconds[DATA] + seconds})

    def by_actors(self, startup: float) -> Profile:
        """Return the profile of a run whose actors took so long to start; they make batches within training steps."""
        seconds = {DATA: self.seconds[DATA], NETWORK: self.seconds[NETWORK] - startup, ACTORS: startup}
        rest = {row: value for row, value in self.seconds.items() if row not in (*seconds, BATCHES)}
        return replace(self, seconds=seconds | rest)

    def __str__(self) -> str:
        """The table: seconds, their share of the whole, and milliseconds a round of what rounds are made of."""
        again = {name: value for name, value in self.seconds.items() if name not in ONCE}
        rows = [(name, value, again.get(name)) for name, value in self.seconds.items()]
        lines = [f"{'where the time went':20} {'seconds':>9} {'share':>7} {'ms a round':>11}"]
        for name, seconds, often in [*rows, ("total", self.total, sum(again.values()))]:
            share = 100 * seconds / self.total if self.total else 0.0
            each = "" if often is None or not self.rounds else f"{1000 * often / self.rounds:11.2f}"
            lines.append(f"{name:20} {seconds:9.3f} {share:5.1f} % {each}".rstrip())
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {"seconds": {name: round(value, 6) for name, value in self.seconds.items()}, "rounds": self.rounds}

    @staticmethod
    def from_json(value: dict[str, Any]) -> Profile:
        return Profile({name: float(seconds) for name, seconds in value["seconds"].items()}, int(value["rounds"]))


class Stopwatch:
    """Charges every second to one row: to that of the innermost block that is timed, or else to `row`."""

    def __init__(self, row: str):
        self.seconds = dict.fromkeys(ROWS, 0.0)
        self.row, self.last = row, perf_counter()

    def switch(self, row: str) -> None:
        """Charge what has passed to the row so far, and what comes to this one."""
        now = perf_counter()
        self.seconds[self.row] += now - self.last
        self.row, self.last = row, now

    @contextmanager
    def timed(self, row: str) -> Iterator[None]:
        """Charge the block to a row."""
        outer = self.row
        self.switch(row)
        try:
            yield
        finally:
            self.switch(outer)

    def move(self, seconds: float, before: str, after: str) -> None:
        """Charge seconds to another row than they were charged to."""
        self.seconds[before] -= seconds
        self.seconds[after] += seconds


class TimedBatching:
    """The batches of an engine, with the seconds that planning and picking them take.

    Clients may train side by side in threads; then the seconds are those of a thread, on average.
    """

    def __init__(self, batching: Any):
        self.batching = batching
        self.spent: dict[int, float] = {}  # by thread

    def __getattr__(self, name: str) -> Any:
        return getattr(self.batching, name)

    def planned(self, *given: Any) -> Any:
        return self.timed(self.batching.planned, given)

    def batch(self, *given: Any) -> Any:
        return self.timed(self.batching.batch, given)

    def timed(self, made: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        start, thread = perf_counter(), get_ident()
        found = made(*given)
        self.spent[thread] = self.spent.get(thread, 0.0) + perf_counter() - start
        return found

    def seconds(self) -> float:
        """Return the seconds since this was asked last."""
        found = sum(self.spent.values()) / max(1, len(self.spent))
        self.spent.clear()
        return found
