"""A federation on this machine, with TLS and keys, whose processes can be killed, stopped and started again."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd
from survivors import MARK, marked

from fedkin.federation import server
from fedkin.federation.folder import Address, Folder, write
from fedkin.federation.processes import Processes, free_port
from fedkin.federation.texts import NOTES

ROWS, TARGET = "rows.csv", "outcome"


@dataclass
class Loopback:
    """The server's processes are `link`, those of sites are `sites`, by the sites' names."""

    folder: Folder
    link: Processes
    sites: Processes
    mark: str  # of all processes, in their environment

    def start_site(self, name: str) -> None:
        """Start a site as its own people do."""
        command = [sys.executable, "-m", "fedkin.command.cli", "federation", "site", str(self.folder.site(name))]
        self.sites.start(name, *command)

    def kill(self, *names: str) -> None:
        """Kill sites, with all that they started, at once and without a word."""
        dead = [self.sites.running.pop(name) for name in names]
        for process in dead:
            for pid in (process.pid, *children(process.pid)):
                os.kill(pid, signal.SIGKILL)
            process.wait()

    def kill_server(self) -> None:
        """Kill the SuperLink and the process that runs apps."""
        for name in ("superlink", "superexec"):
            dead = self.link.running.pop(name)
            os.killpg(dead.pid, signal.SIGKILL)
            dead.wait()

    def kill_app(self) -> bool:
        """Kill the ServerApp; returns whether there was one."""
        found = [pid for pid, command in marked(self.mark).items() if "flwr-serverapp" in command]
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        return bool(found)

    def notes(self) -> str:
        """What the people at the server read."""
        path = self.folder.runs / NOTES
        return path.read_text() if path.exists() else ""

    def heard(self, name: str) -> str:
        """What the people at a site read."""
        logs = [self.folder.site(name) / "kept" / "logs" / "supernode.log", self.sites.logs / f"{name}.log"]
        return "".join(path.read_text(errors="replace") for path in logs if path.exists())


def children(parent: int) -> list[int]:
    """The processes that a process has started and that are still there."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
        except (OSError, ValueError):
            continue
    return found


@contextmanager
def loopback(
    path: Path, names: Sequence[str], method: str, rounds: int, settings: str, **more: object
) -> Iterator[Loopback]:
    """A federation whose server runs, with a small table at each site; at the end all processes are ended. `more` are
    further settings of its app."""
    folder = prepared(path, names, method, rounds, settings)
    change(folder, **more)
    mark = uuid4().hex
    environment = server.surroundings(folder) | {MARK: mark, "HOME": str(path.parent)}
    with (
        Processes(folder.state / "sites", environment) as sites,
        Processes(folder.state / "logs", environment) as link,
    ):
        server.start(folder, link)
        yield Loopback(folder, link, sites, mark)


def prepared(path: Path, names: Sequence[str], method: str, rounds: int, settings: str) -> Folder:
    """The folder of a federation with a small table at each site."""
    address = Address("127.0.0.1", free_port())
    folder = write(
        path, names, method=method, rounds=rounds, address=address, target=TARGET, data=ROWS, settings=settings
    )
    for number, name in enumerate(names):
        draw = np.random.default_rng(number)
        x = draw.normal(size=(60, 4))
        lean = draw.normal(size=4)
        table = pd.DataFrame(x, columns=["age", "weight", "sodium", "rate"])
        table.assign(outcome=np.where(x @ lean > 0, "ill", "well")).to_csv(folder.site(name) / ROWS, index=False)
    return folder


def until(found: Callable[[], object], seconds: float, what: str, check: Callable[[], None] = lambda: None) -> None:
    """Wait until something is so, at most so many seconds."""
    end = time.monotonic() + seconds
    while not found():
        check()
        assert time.monotonic() < end, what
        time.sleep(0.3)


def change(folder: Folder, **settings: object) -> None:
    """Set what the app is set to do."""
    path = folder.app / "pyproject.toml"
    lines = path.read_text().splitlines()
    for name, value in settings.items():
        key = name.replace("_", "-")
        lines = [f"{key} = {value}" if line.startswith(f"{key} = ") else line for line in lines]
    path.write_text("\n".join(lines) + "\n")
