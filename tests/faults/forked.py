"""Plays commands of fedkin, each in a process of its own, and says how each ended.

The processes are forked from this one, which has imported everything and computed nothing: a fork takes milliseconds
where an import takes seconds, and torch does not survive a fork after its threads have begun. A command that crashes,
hangs or takes all memory ends its own process and no other.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import sklearn.datasets  # noqa: E402  which data import late
import sklearn.preprocessing  # noqa: E402, F401
import torch  # noqa: E402

import fedkin.report.page  # noqa: E402, F401  plotly, which reports import late
import fedkin.runs.session as session  # noqa: E402
from fedkin.command import cli  # noqa: E402

SECONDS = 20.0  # for a command
PATIENCE = 10.0  # seconds in which a command that is asked to end must end
MEMORY = 6 * 2**30  # bytes that a command may take
ALONE = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}  # one core, and no network
KEPT = 20_000  # characters of what a command said


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (below 0: the signal), what it said, and what it took."""

    code: int
    out: str
    err: str
    seconds: float
    megabytes: int
    late: bool = False  # its time was over, and it was asked to end


def played(
    words: Sequence[str], folder: Path, seconds: float = SECONDS, memory: int = MEMORY, often: bool = False
) -> Ended:
    """Play `fedkin WORDS` in a folder, and wait for its end."""
    return ended(started(words, folder, memory, often), folder, seconds)


def started(words: Sequence[str], folder: Path, memory: int = MEMORY, often: bool = False) -> int:
    """Begin `fedkin WORDS` in a folder; returns the number of its process. `often`: as many checkpoints as can be."""
    return forked(lambda: command(words, often), folder, memory)


def forked(work: Callable[[], int], folder: Path, memory: int = MEMORY) -> int:
    """Begin some work in a process of its own, in this folder; what it says goes into files beside the folder."""
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # so that the process does not copy what it never looks at
    number = os.fork()
    if number:
        return number
    code = 70
    try:
        os.setsid()
        os.chdir(folder)
        os.environ |= ALONE
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started all this without them
        for number_of_signal in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number_of_signal, signal.SIG_DFL)
        for handle, name in ((1, "out"), (2, "err")):
            opened = os.open(folder.with_name(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(opened, handle)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        limit(resource.RLIMIT_AS, used() + memory)
        limit(resource.RLIMIT_CORE, 0)
        code = work()
    except BaseException:  # shown by its name, as a traceback
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(code)


def command(words: Sequence[str], often: bool) -> int:
    """Play a command as the shell would; returns its exit code."""
    torch.set_num_threads(1)
    if often:
        session.run.__kwdefaults__["checkpoint_seconds"] = 0.0
    sys.argv = ["fedkin", *words]
    sys.modules["__main__"] = ModuleType("__main__")  # which processes that the command starts would import
    try:
        cli.main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    return 0


def ended(number: int, folder: Path, seconds: float = SECONDS) -> Ended:
    """Wait for the end of a process. One that takes too long is interrupted as by Ctrl-C, and in the end killed."""
    began, late = time.monotonic(), False
    handle = os.pidfd_open(number)
    try:
        for wait, number_of_signal in ((seconds, signal.SIGINT), (PATIENCE, signal.SIGKILL), (PATIENCE, 0)):
            if select.select([handle], [], [], wait)[0]:
                break
            late = True
            os.kill(number, number_of_signal)
    finally:
        os.close(handle)
    _, status, took = os.wait4(number, 0)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(number, signal.SIGKILL)  # whatever it has left behind
    out, err = (said(folder.with_name(name)) for name in ("out", "err"))
    code = os.waitstatus_to_exitcode(status)
    return Ended(code, out, err, time.monotonic() - began, took.ru_maxrss // 1024, late)


def said(path: Path) -> str:
    """Return what a command said, without the middle of very much."""
    text = path.read_text(errors="backslashreplace") if path.exists() else ""
    return text if len(text) <= KEPT else f"{text[: KEPT // 2]}\n...\n{text[-KEPT // 2 :]}"


def limit(kind: int, most: int) -> None:
    """Let this process have at most so much; a limit that is there already and lower stays."""
    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, hard))


def used() -> int:
    """Return how many bytes of addresses this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
