"""How far the runs of a folder are, whether anybody is at work on them, and about how long they will take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fedkin.runs import files
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.run import Run

State = Literal["waiting", "running", "stopped", "finished"]
LATE = 20  # rounds of which the last ones say how long a round takes


@dataclass(frozen=True)
class RunProgress:
    """How far one run is."""

    method: str
    name: str  # method, seed and split
    state: State
    round: int  # the last one that is recorded
    rounds: int  # how many are asked for
    seconds: float | None  # that a round takes; None before the first
    since: float = 0.0  # seconds since the last round was recorded

    @property
    def left(self) -> float | None:
        """About how many seconds the run still takes; None where nothing is known."""
        if self.state == "finished":
            return 0.0
        if self.seconds is None:
            return None
        spent = min(self.since, self.seconds) if self.state == "running" else 0.0
        return max(0.0, (self.rounds - self.round) * self.seconds - spent)


@dataclass(frozen=True)
class Progress:
    """How far all runs of a folder are."""

    runs: tuple[RunProgress, ...]
    jobs: int = 1  # runs that are played side by side
    at_work: bool = False  # whether a command is at work in the folder

    def count(self, state: State) -> int:
        return sum(run.state == state for run in self.runs)

    @property
    def state(self) -> State:
        """That of all runs together: finished when all are, running while a command is at work."""
        if self.runs and self.count("finished") == len(self.runs):
            return "finished"
        if self.at_work or self.count("running"):
            return "running"
        return "stopped" if any(run.round for run in self.runs) else "waiting"

    @property
    def left(self) -> float | None:
        """About how many seconds all runs still take; None before a round of any of them is known."""
        known = [run.seconds for run in self.runs if run.seconds is not None]
        if not known:
            return None
        each = [self.guess(run, sum(known) / len(known)) for run in self.runs]
        return max(sum(each) / max(1, self.jobs), *each)

    def guess(self, run: RunProgress, usual: float) -> float:
        """The seconds left of a run. One that has no round yet is taken to be as fast as its method's other seeds or,
        if there are none, as all runs `usual`ly are."""
        if run.left is not None:
            return run.left
        alike = [other.seconds for other in self.runs if other.method == run.method and other.seconds is not None]
        return run.rounds * (sum(alike) / len(alike) if alike else usual)


def progress_of(place: CommandFolder, named: Sequence[tuple[str, Run]], now: float) -> Progress:
    """Return how far these runs of a folder are, each with the name of its method; `now` is the time of day."""
    runs = tuple(run_progress(method, run, now) for method, run in named)
    jobs = int(place.plan().get("jobs", 1)) if place.has_plan else 1
    return Progress(runs, jobs, files.in_use(place.path))


def run_progress(method: str, run: Run, now: float) -> RunProgress:
    folder = run.files
    played = run.lines if run.begun else []
    state: State = "waiting"
    if run.begun and run.finished:
        state = "finished"
    elif files.in_use(folder.path):
        state = "running"
    elif run.begun:
        state = "stopped"
    took = [sum(line["seconds"].values()) for line in played[-LATE:]]
    since = now - folder.changed() if played else 0.0
    mean = sum(took) / len(took) if took else None
    return RunProgress(method, name_of(method, run), state, run.reached, run.asked, mean, max(0.0, since))


def name_of(method: str, run: Run) -> str:
    """What a run is called, also before it has begun, when only its folder says its seed and split."""
    words = run.files.path.name.replace("-", " ").removesuffix(" data seed 0").removesuffix(" split 0")
    return run.name if run.begun else f"{method} {words}"
