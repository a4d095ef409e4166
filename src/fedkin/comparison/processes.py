"""Processes that a command plays runs or trials in: how they are started, heard, lost and ended."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

GLANCE = 0.1  # seconds between two looks whether to stop


class Killed(Exception):
    """A process ended before its run did."""


class Processes:
    """Processes at work, what ended badly among them, and whether they were sent the word to stop."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self.warn = warn
        self.busy: list[Any] = []  # each has a process, a line to it, and the name of what it plays
        self.idle: list[Any] = []
        self.killed: list[str] = []
        self.error: Exception | None = None
        self.stopped = False

    def begin(self) -> None:
        """Start the first processes."""
        raise TypeError(f"{type(self).__name__} does not say how it begins")

    def heard(self, worker: Any, word: str, value: Any) -> None:
        """Take one message of a process."""
        raise TypeError(f"{type(self).__name__} does not say what it hears")

    def hear(self, worker: Any) -> None:
        """Take the next message of a process, or note that it has ended."""
        try:
            word, value = worker.line.recv()
        except (EOFError, OSError):
            self.lose(worker)
            return
        self.heard(worker, word, value)

    def stop(self) -> None:
        """Let every process finish its round and save."""
        raise TypeError(f"{type(self).__name__} does not say how it stops")

    def play_all(self, stopping: Callable[[], bool]) -> None:
        """Play everything. An error in one process stops the others after their round, and is raised at the end.

        Where a process was killed, the other processes play what is left, and the kill is reported at the end.
        """
        try:
            self.begin()
            while self.busy:
                if stopping():
                    self.stop()
                for line in connection.wait([worker.line for worker in self.busy], GLANCE):
                    self.hear(next(worker for worker in self.busy if worker.line is line))
        except BaseException:
            for worker in [*self.busy, *self.idle]:
                worker.process.kill()
            raise
        finally:
            for worker in [*self.busy, *self.idle]:
                worker.line.close()
                worker.process.join()
        if self.error:
            raise self.error
        if self.killed:
            raise Killed(f"{' '.join(self.killed)} All else is saved.")

    def lose(self, worker: Any) -> None:
        """Note that a process has ended without a word. It is not replaced, because memory may be short."""
        self.busy.remove(worker)
        self.idle.append(worker)
        worker.process.join()
        code = worker.process.exitcode or 0
        how = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
        why = ", perhaps for lack of memory" if code == -signal.SIGKILL else ""
        self.killed.append(f"The process of {worker.name} {how}{why}.")
        if self.busy:
            self.warn(f"{self.killed[-1]} The others go on.")


def started(work: Callable[..., None], given: tuple[Any, ...], number: int) -> tuple[SpawnProcess, Connection]:
    """Start a process that does this work with so many threads; returns the process and the line to it."""
    context = get_context("spawn")  # torch does not survive a fork
    here, there = context.Pipe()
    process = context.Process(target=work, args=(there, *given), daemon=True)
    with threads(number), without_interrupts():
        process.start()
    there.close()
    return process, here


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Processes started meanwhile use so many threads, in every library."""
    name = "OMP_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = str(number)
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Processes started meanwhile never see Ctrl-C or the signal to end, not even while they import; the command sees
    them afterwards."""
    resource_tracker.ensure_running()  # which would let signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# in a process


def end_with_the_command() -> None:
    """A command that was killed leaves no process behind."""
    command = parent_process()
    if command is not None:
        command.join()
        os._exit(1)


def sendable(error: Exception) -> Exception:
    """The error itself or, if it cannot be sent, another that says the same."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        other = RuntimeError(f"{type(error).__name__}: {error}")
        for text in error.__notes__:
            other.add_note(text)
        return other
    return error
