"""Processes that are ended together, with all that they started themselves; and ports."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Any

from fedkin.errors import Unfinished, require
from fedkin.federation import launch

GENTLY = 5.0  # seconds that a process has to end by itself
REAPED = 10.0  # seconds after which a killed process that is still there is left alone; a busy machine needs some
SCRIPT = Path(launch.__file__)


@dataclass
class Processes:
    """Processes by name, each in a group of its own, with a log in `logs`. Use it in a `with` block."""

    logs: Path
    more: Mapping[str, str] = field(default_factory=dict)  # for the environment of all
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    open: list[IO[bytes]] = field(default_factory=list)

    def __enter__(self) -> Processes:
        self.logs.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self, name: str, *words: str, folder: Path | None = None) -> None:
        """Start a process with these words, in this folder."""
        log = open(self.logs / f"{name}.log", "ab")  # noqa: SIM115 - the process writes to it until the end
        self.open.append(log)
        how: dict[str, Any] = {"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL, "start_new_session": True}
        self.running[name] = subprocess.Popen(words, env=environment(self.more), cwd=folder or self.logs, **how)

    def start_flower(self, program: str, *words: str, folder: Path | None = None) -> None:
        """Start one of Flower's programs: superlink, superexec or supernode."""
        self.start(program, sys.executable, "-P", str(SCRIPT), program, *words, folder=folder)

    def log(self, name: str, letters: int = 2000) -> str:
        """Return the end of what a process has written."""
        path = self.logs / f"{name}.log"
        return path.read_text(errors="replace")[-letters:] if path.exists() else ""

    def check(self) -> None:
        """Refuse to go on where a process has ended by itself."""
        for name, process in self.running.items():
            code = process.poll()
            if code is not None:
                log = self.logs / f"{name}.log"
                raise Unfinished(f"The process of {name} ended with code {code}; the last it wrote is in {log}.")

    def end(self, *names: str) -> None:
        """End processes, all of them by default, and everything that they started: gently, then at once."""
        chosen = [self.running.pop(name) for name in names or list(self.running)]
        for number in (signal.SIGTERM, signal.SIGKILL):
            left = [process for process in chosen if told(process, number)]
            wait(left, GENTLY if number == signal.SIGTERM else 1.0)
        for process in chosen:
            with suppress(subprocess.TimeoutExpired):
                process.wait(REAPED)
        if not self.running:
            while self.open:
                self.open.pop().close()


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of processes: programs of this Python are found, they end with this process, and one
    thread each is enough where several share a machine."""
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    own = {"PATH": here, launch.PARENT: str(os.getpid()), "PYTHONUNBUFFERED": "1"}
    own |= {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
    return {"OMP_NUM_THREADS": "1", **os.environ, **own, **more}


def told(process: subprocess.Popen[bytes], number: int) -> bool:
    """Tell a process and its group a signal; returns whether there was anybody to tell."""
    try:
        os.killpg(process.pid, number)  # the number is taken as long as anybody of the group is there
    except ProcessLookupError:
        return False
    return True


def wait(processes: list[subprocess.Popen[bytes]], seconds: float) -> None:
    """Wait until processes and their groups are gone, at most so many seconds."""
    end = time.monotonic() + seconds
    for process in processes:
        while time.monotonic() < end:
            process.poll()
            if not told(process, 0):
                break
            time.sleep(0.05)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let signals that end this process end it as Ctrl-C does, so that `with` blocks are left properly.

    One that is ignored, as by nohup, still is.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) != signal.SIG_IGN]
    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


# ports


def free_port() -> int:
    """Return a port of this machine that nobody listens at now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def check_free(host: str, port: int) -> None:
    """Refuse a port that is in use."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((host, port))
            free = True
        except OSError:
            free = False
    require(free, f"Port {port} is in use on this machine; end what uses it, or choose another one.")


def listens(port: int) -> bool:
    """Whether somebody listens at this port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
