"""Plays the runs of a plan side by side, each in a process that is used again for the next run.

The command and a process talk through a pipe that only these two have. The command sends runs, and the word to stop;
the process sends the record of every round, warnings, and how a run ended. They share nothing else, because a process
that is killed could leave a common queue or lock broken.
"""

from __future__ import annotations

import os
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from threading import Thread
from typing import Any

from fedkin.comparison.on_ray import play_on_ray
from fedkin.comparison.plan import Loaded, Planned
from fedkin.comparison.processes import Processes, end_with_the_command, sendable, started
from fedkin.comparison.sequence import Watching, nobody, play_in_sequence
from fedkin.data import Data
from fedkin.imports import of_user
from fedkin.runs.callback import Callback, Record
from fedkin.runs.pulse import Doing

TOLD = ("begun", "working", "recorded", "saved", "ended")  # the functions of a callback
STOP = None  # sent instead of a run: finish the round, save, and end


def play_side_by_side(
    runs: list[Planned],
    jobs: int,
    loaded: Loaded,
    *,
    cluster: str | None = None,
    resume: bool = False,
    watching: Watching = nobody,
    warn: Callable[[str], None] = print,
    stopping: Callable[[], bool] = lambda: False,
) -> bool:
    """Play every run that is not done, up to `jobs` at a time; returns False if some were stopped on the way.

    With `cluster`, the address of a Ray cluster, they are played there, as many at a time as there are cores.
    """
    waiting = deque((number, one) for number, one in enumerate(runs, 1) if not one.done)
    jobs = min(jobs, len(waiting)) if cluster is None else len(waiting)
    if (jobs > 1 or cluster is not None) and not all(travels(one) for _, one in waiting):
        warn("Data and modules handed over in Python stay in their process, so the arms run one after another.")
        jobs, cluster = 1, None
    if cluster is not None and waiting:
        told: dict[str, Any] = {"watching": watching, "warn": warn, "stopping": stopping}
        play_on_ray(waiting, len(runs), cluster, play_one, TOLD, resume=resume, **told)
        return all(one.done for one in runs)
    if jobs < 2:
        return play_in_sequence(runs, loaded, resume=resume, watching=watching, warn=warn)
    Crew(waiting, jobs, len(runs), resume, watching, warn).play_all(stopping)
    return all(one.done for one in runs)


def travels(one: Planned) -> bool:
    """Whether another process can find by name what this run needs."""
    return isinstance(one.experiment.data, Data) and isinstance(one.experiment.model, str)


# in the command


@dataclass
class Worker:
    """A process, the run it plays, and who is told of that run's rounds."""

    process: SpawnProcess
    line: Connection
    planned: Planned
    callback: Callback | None

    @property
    def name(self) -> str:
        return self.planned.name


class Crew(Processes):
    """The processes that play the runs of a plan."""

    def __init__(
        self,
        waiting: deque[tuple[int, Planned]],
        jobs: int,
        of: int,
        resume: bool,
        watching: Watching,
        warn: Callable[[str], None],
    ):
        super().__init__(warn)
        self.waiting, self.jobs, self.of, self.resume, self.watching = waiting, jobs, of, resume, watching

    def begin(self) -> None:
        for _ in range(self.jobs):
            self.hire()

    def hire(self) -> None:
        """Start a process with the next run."""
        number, one = self.waiting.popleft()
        process, line = started(work, (self.resume,), one.experiment.threads or 1)
        self.busy.append(Worker(process, line, one, self.watching(one, number, self.of)))
        line.send(one)

    def heard(self, worker: Worker, word: str, value: Any) -> None:
        if word in TOLD:
            answer = getattr(worker.callback, word)(value) if worker.callback else None
            if answer is False:  # of `recorded`: the run is to stop
                self.stop()
        elif word == "warn":
            self.warn(value)
        elif word == "end":
            if value is not None:
                self.error = self.error or value
                self.stop()
            self.release(worker)

    def release(self, worker: Worker) -> None:
        """Give a process that has ended a run the next one, or let the process go."""
        if not self.waiting:
            self.busy.remove(worker)
            self.idle.append(worker)
            worker.line.close()
            return
        number, worker.planned = self.waiting.popleft()
        worker.callback = self.watching(worker.planned, number, self.of)
        with suppress(OSError):  # if it was killed just now, that is heard next
            worker.line.send(worker.planned)

    def stop(self) -> None:
        """Let every process finish its round and save; those that wait for their turn do not begin."""
        if not self.stopped:
            self.stopped = True
            self.waiting.clear()
            for worker in self.busy:
                with suppress(OSError):
                    worker.line.send(STOP)


# in a process


def work(line: Connection, resume: bool) -> None:
    """Play the runs that the command sends, until it sends something else or is gone."""
    Thread(target=end_with_the_command, daemon=True).start()
    loaded = Loaded()
    with suppress(EOFError, OSError):
        while isinstance(one := line.recv(), Planned):
            line.send(("end", play_one(one, line, loaded, resume)))
    os._exit(0)  # everything is written, and taking torch apart takes seconds


@dataclass(frozen=True)
class Sender(Callback):
    """Sends what a callback is told to the command, and stops the run when the command sends anything."""

    line: Connection

    def begun(self, experiment: dict[str, Any]) -> None:
        self.line.send(("begun", experiment))

    def working(self, doing: Doing) -> None:
        self.line.send(("working", doing))

    def recorded(self, record: Record) -> bool:
        self.line.send(("recorded", record.brief()))
        return not self.line.poll()  # all that comes while a run is played is the word to stop

    def saved(self, round: int) -> None:
        self.line.send(("saved", round))

    def ended(self, finished: bool) -> None:
        self.line.send(("ended", finished))


def play_one(one: Planned, line: Connection, loaded: Loaded, resume: bool) -> Exception | None:
    """Play one run; returns the error it ended with, if any."""

    def warn(sentence: str) -> None:
        line.send(("warn", sentence))

    try:
        play_in_sequence([one], loaded, resume=resume, watching=lambda *_: Sender(line), warn=warn)
    except Exception as error:
        if (mine := of_user(error)) is not None:
            return mine
        error.add_note(f"\nIn the process of {one.name}:\n{traceback.format_exc()}")
        return sendable(error)
    return None
