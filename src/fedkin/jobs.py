"""Arms side by side, each in a process of its own, which is used again for the next one.

The command and a process talk through a pipe that only these two have. Down go arms, and the word to stop; up come what
is heard and warned of while an arm is played, and how it ended. Nothing else is shared: a queue or a lock of all could
be left broken by a process that is killed.
"""

from __future__ import annotations

import os
import pickle
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from threading import Thread

from fedkin import compare
from fedkin.compare import Arm, Loaded
from fedkin.data import Data
from fedkin.play import Listener, Tick

GLANCE = 0.1  # seconds between two looks whether to stop
STOP = None  # instead of an arm: finish the round, save, and end


class Killed(Exception):
    """A process ended before its arm did."""


def play(
    plan: list[Arm],
    jobs: int,
    loaded: Loaded,
    *,
    resume: bool = False,
    listener: Callable[[Arm, int, int], Listener | None] = lambda *_: None,
    warn: Callable[[str], None] = print,
    stopping: Callable[[], bool] = lambda: False,
) -> bool:
    """Run every arm that is not done, up to `jobs` at a time; False if it was stopped on the way."""
    waiting = deque((number, arm) for number, arm in enumerate(plan, 1) if not arm.done)
    jobs = min(jobs, len(waiting))
    if jobs > 1 and not all(travels(arm) for _, arm in waiting):
        warn("Data and modules handed over in Python stay in their process, so the arms run one after another.")
        jobs = 1
    if jobs < 2:
        return compare.play(plan, loaded, resume=resume, listener=listener, warn=warn)
    Crew(waiting, jobs, len(plan), resume, listener, warn).play(stopping)
    return all(arm.done for arm in plan)


def travels(arm: Arm) -> bool:
    """Whether another process can find by name what this arm needs."""
    return isinstance(arm.experiment.data, Data) and isinstance(arm.experiment.model, str)


# in the command


@dataclass
class Worker:
    """A process, and the arm it plays."""

    process: SpawnProcess
    line: Connection
    arm: Arm
    ear: Listener | None


class Crew:
    """The processes that play the arms of a plan."""

    def __init__(
        self,
        waiting: deque[tuple[int, Arm]],
        jobs: int,
        of: int,
        resume: bool,
        listener: Callable[[Arm, int, int], Listener | None],
        warn: Callable[[str], None],
    ):
        self.waiting, self.jobs, self.of, self.resume = waiting, jobs, of, resume
        self.listener, self.warn = listener, warn
        self.busy: list[Worker] = []
        self.idle: list[Worker] = []
        self.killed: list[str] = []
        self.error: Exception | None = None
        self.told = False  # to stop

    def play(self, stopping: Callable[[], bool]) -> None:
        """An error in one arm stops the others after their round, and is raised; where a process was killed the others
        play on with all that is left, and it is said at the end."""
        try:
            for _ in range(self.jobs):
                self.hire()
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

    def hire(self) -> None:
        """Start a process with the next arm."""
        number, arm = self.waiting.popleft()
        context = get_context("spawn")  # torch does not survive a fork
        here, there = context.Pipe()
        process = context.Process(target=work, args=(there, self.resume), daemon=True)
        with threads(arm.experiment.threads or 1), without_interrupts():
            process.start()
        there.close()
        self.busy.append(Worker(process, here, arm, self.listener(arm, number, self.of)))
        here.send(arm)

    def hear(self, worker: Worker) -> None:
        """Take one message of a process."""
        try:
            word, value = worker.line.recv()
        except (EOFError, OSError):
            self.lose(worker)
            return
        if word == "tick" and worker.ear:
            worker.ear(value)
        elif word == "warn":
            self.warn(value)
        elif word == "end":
            if value is not None:
                self.error = self.error or value
                self.stop()
            self.release(worker)

    def release(self, worker: Worker) -> None:
        """Give a process that has ended an arm the next one, or let it go."""
        if not self.waiting:
            self.busy.remove(worker)
            self.idle.append(worker)
            worker.line.close()
            return
        number, worker.arm = self.waiting.popleft()
        worker.ear = self.listener(worker.arm, number, self.of)
        with suppress(OSError):  # if it was killed just now, that is heard next
            worker.line.send(worker.arm)

    def lose(self, worker: Worker) -> None:
        """A process has ended without a word. It is not replaced, for it may be memory that is short."""
        self.busy.remove(worker)
        self.idle.append(worker)
        worker.process.join()
        code = worker.process.exitcode or 0
        how = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
        why = ", perhaps for lack of memory" if code == -signal.SIGKILL else ""
        self.killed.append(f"The process of {worker.arm.name} {how}{why}.")
        if self.busy:
            self.warn(f"{self.killed[-1]} The others go on.")

    def stop(self) -> None:
        """Let every process finish its round and save; those that wait for their turn do not begin."""
        if not self.told:
            self.told = True
            self.waiting.clear()
            for worker in self.busy:
                with suppress(OSError):
                    worker.line.send(STOP)


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
    """Processes started meanwhile never see Ctrl-C, not even while they import; the command sees it afterwards."""
    resource_tracker.ensure_running()  # which would let signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# in a process


def work(line: Connection, resume: bool) -> None:
    """Play the arms that come, until something else does or the command is gone."""
    Thread(target=end_with_the_command, daemon=True).start()
    loaded = Loaded()
    with suppress(EOFError, OSError):
        while isinstance(arm := line.recv(), Arm):
            line.send(("end", played(arm, line, loaded, resume)))
    os._exit(0)  # all is written, and to take torch apart takes seconds


def end_with_the_command() -> None:
    """A command that was killed leaves no process behind."""
    command = parent_process()
    if command is not None:
        command.join()
        os._exit(1)


def played(arm: Arm, line: Connection, loaded: Loaded, resume: bool) -> Exception | None:
    """Play one arm; the error it ended with, if any."""

    def heard(tick: Tick) -> bool:
        line.send(("tick", tick))
        return not line.poll()  # all that comes while an arm is played is the word to stop

    def warn(sentence: str) -> None:
        line.send(("warn", sentence))

    try:
        compare.play([arm], loaded, resume=resume, listener=lambda *_: heard, warn=warn)
    except Exception as error:
        error.add_note(f"\nIn the process of {arm.name}:\n{traceback.format_exc()}")
        return sendable(error)
    return None


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
