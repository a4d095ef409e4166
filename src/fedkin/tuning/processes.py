"""Plays the attempts of a search side by side, each in a process that is used again for the next one.

The command asks the study and notes what came out; a process plays. They talk through a pipe that only these two have:
the command sends attempts, and the word to stop the one that is played; the process sends the record of every round
and how an attempt ended.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from threading import Thread
from typing import Any

from fedkin.comparison.jobs import STOP, TOLD, Sender
from fedkin.comparison.processes import Processes, end_with_the_command, sendable, started
from fedkin.runs.callback import Callback
from fedkin.tuning.loaded import Validated
from fedkin.tuning.search import Attempt, Outcome, Search, played

# in the command


@dataclass
class Worker:
    """A process, the attempt it plays, and who is told of that attempt's rounds."""

    process: SpawnProcess
    line: Connection
    attempt: Attempt
    callback: Callback

    @property
    def name(self) -> str:
        return self.attempt.name


class Crew(Processes):
    """The processes that play the attempts of a search."""

    def __init__(self, search: Search, jobs: int, warn: Callable[[str], None]):
        super().__init__(warn)
        self.search, self.jobs = search, jobs

    def play(self, stopping: Callable[[], bool]) -> bool:
        """Play all attempts; returns False if somebody stopped them."""
        self.play_all(stopping)
        return not self.stopped

    def begin(self) -> None:
        while len(self.busy) < self.jobs and (attempt := self.search.next()) is not None:
            process, line = started(work, (), attempt.experiments[0].threads or 1)
            self.busy.append(Worker(process, line, attempt, self.search.callback(attempt)))
            line.send(attempt)

    def heard(self, worker: Worker, word: str, value: Any) -> None:
        if word in TOLD:
            if getattr(worker.callback, word)(value) is False:  # of `recorded`
                send(worker, STOP)
                if not self.search.given_up(worker.attempt):
                    self.stop()
        elif isinstance(value, Outcome):
            if not self.search.ended(worker.attempt, value):
                self.stop()
            self.release(worker)
        else:
            self.error = self.error or value
            self.stop()
            self.release(worker)

    def release(self, worker: Worker) -> None:
        """Give a process the next attempt, or let it go."""
        attempt = None if self.stopped else self.search.next()
        if attempt is None:
            self.busy.remove(worker)
            self.idle.append(worker)
            worker.line.close()
            return
        worker.attempt, worker.callback = attempt, self.search.callback(attempt)
        send(worker, attempt)

    def stop(self) -> None:
        """Let every process finish its round and save; no other attempt begins."""
        if not self.stopped:
            self.stopped = True
            for worker in self.busy:
                send(worker, STOP)


def send(worker: Worker, value: object) -> None:
    with suppress(OSError):  # if it was killed just now, that is heard next
        worker.line.send(value)


# in a process


def work(line: Connection) -> None:
    """Play the attempts that the command sends, until it is gone. A word to stop that comes late is passed over."""
    Thread(target=end_with_the_command, daemon=True).start()
    loaded = Validated()
    with suppress(EOFError, OSError):
        while True:
            if isinstance(attempt := line.recv(), Attempt):
                line.send(("end", play_one(attempt, line, loaded)))
    os._exit(0)  # everything is written, and taking torch apart takes seconds


def play_one(attempt: Attempt, line: Connection, loaded: Validated) -> Outcome | Exception:
    """Play one attempt; returns how it ended, or the error it ended with."""
    try:
        return played(attempt, loaded(attempt.experiments[0]), Sender(line))
    except Exception as error:
        error.add_note(f"\nIn the process of {attempt.name}:\n{traceback.format_exc()}")
        return sendable(error)
