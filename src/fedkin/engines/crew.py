"""Processes that train clients beside the run's own process, so that every core works.

They are forked from the run's process, so they have its samples, network and parts without a copy. What a share of
clients is sent and holds, and what comes back, goes through memory that both processes see; a pipe carries only where
it lies there. Threads would share all of this, but small operations would wait for Python's lock: measured on two
cores, threads were 1.0 to 1.9 times as fast as one core, and processes are 1.8 to 2.0 times (docs/decisions/0022).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from typing import Any, NoReturn

import torch
from torch import Tensor

from fedkin.core import tree

ALIGNED = 64  # bytes: where tensors begin, as in torch's own memory
DIE_WITH_PARENT = 1  # prctl's PR_SET_PDEATHSIG

Job = dict[str, Any]  # a nested dictionary of tensors, and under "about" what is no tensor
Work = Callable[[Job], Job]


class Lost(Exception):
    """A process of the crew is gone: killed, perhaps for lack of memory."""


def possible() -> bool:
    """Whether a crew can be hired here: it needs Linux's fork and memory files."""
    return sys.platform == "linux" and hasattr(os, "memfd_create")


class Shared:
    """Memory that two processes see. Either of them may make it larger."""

    def __init__(self) -> None:
        self.file = os.memfd_create("fedkin")
        self.size = 0
        self.view: mmap.mmap | None = None

    def room(self, size: int) -> mmap.mmap:
        """Return the memory, at least `size` bytes of it."""
        if self.view is None or self.size < size:
            if os.fstat(self.file).st_size < size:
                os.ftruncate(self.file, size)
            self.size = os.fstat(self.file).st_size
            self.view = mmap.mmap(self.file, self.size)  # tensors that look at an older view keep that alive
        return self.view

    def put(self, values: dict[str, Tensor]) -> list[tuple[str, int, tuple[int, ...], torch.dtype]]:
        """Copy tensors into the memory and return where each lies: its name, first byte, shape and type."""
        places, end = [], 0
        for name, value in values.items():
            places.append((name, end, tuple(value.shape), value.dtype))
            end += -(-value.numel() * value.element_size() // ALIGNED) * ALIGNED
        if places:
            self.room(end)
        for value, mine in zip(values.values(), self.get(places).values(), strict=True):
            mine.copy_(value)
        return places

    def get(self, places: Sequence[tuple[str, int, tuple[int, ...], torch.dtype]]) -> dict[str, Tensor]:
        """Return the tensors that lie there, without a copy."""
        found = {}
        for name, start, shape, dtype in places:
            count = torch.Size(shape).numel()
            if not count:
                found[name] = torch.empty(shape, dtype=dtype)
                continue
            room = self.room(start + count * dtype.itemsize)
            found[name] = torch.frombuffer(room, dtype=dtype, count=count, offset=start).view(shape)
        return found

    def close(self) -> None:
        """Give the memory back as soon as no tensor looks at it."""
        self.view = None
        with suppress(OSError):
            os.close(self.file)


@dataclass
class Helper:
    """One process of the crew."""

    pid: int
    line: Connection
    there: Shared  # what the helper is given
    back: Shared  # what the helper gives

    def give(self, job: Job) -> None:
        """Give the helper a job. Its answer is to be taken before the next one is given."""
        about = job.pop("about")
        try:
            self.line.send((about, self.there.put(tree.flat(job))))
        except (OSError, EOFError) as error:
            raise Lost from error

    def take(self) -> Job:
        """Wait for the answer. Its tensors look at shared memory, so they hold until the next job is given."""
        try:
            error, places = self.line.recv()
        except (OSError, EOFError) as gone:
            raise Lost from gone
        if error is not None:
            raise error
        return tree.nested(self.back.get(places))

    def close(self) -> None:
        """End the process."""
        self.line.close()
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.there.close()
        self.back.close()


class Crew:
    """Helpers that all do the same work, each on what it is given."""

    def __init__(self, number: int, work: Work):
        self.helpers: list[Helper] = []
        for _ in range(number):
            self.helpers.append(self.hired(work))

    def hired(self, work: Work) -> Helper:
        """Fork a helper."""
        here, line = Pipe()
        there, back = Shared(), Shared()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads: this child starts none
            pid = os.fork()
        if pid == 0:
            here.close()
            for other in self.helpers:
                other.line.close()
            serve(line, there, back, work)
        line.close()
        return Helper(pid, here, there, back)

    def close(self) -> None:
        """End all helpers."""
        for helper in self.helpers:
            helper.close()
        self.helpers = []


# in a helper


def serve(line: Connection, there: Shared, back: Shared, work: Work) -> NoReturn:
    """Do the jobs that come, until the line is closed or the run's process is gone."""
    try:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run's process hears Ctrl-C, and ends its round
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        torch.set_num_threads(1)
        while True:
            about, places = line.recv()
            line.send(answer(work, {"about": about, **tree.nested(there.get(places))}, back))
    except (EOFError, OSError, KeyboardInterrupt):
        pass
    finally:
        os._exit(0)  # nothing that the run's process registered is to be run here


def answer(work: Work, job: Job, back: Shared) -> tuple[Exception | None, list[Any]]:
    """Do a job and return the error it ended with, if any, and where its result lies."""
    try:
        return None, back.put(tree.flat(work(job)))
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return RuntimeError(f"{type(error).__name__}: {error}"), []
        return error, []
