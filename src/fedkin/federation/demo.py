"""A federation of real hospitals on this machine alone: a server and sites, each a process of its own, with TLS and
keys as between machines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from fedkin.data import heart
from fedkin.errors import Unfinished, require
from fedkin.federation import server
from fedkin.federation.control import Control
from fedkin.federation.folder import Address, Folder, write
from fedkin.federation.follow import Shown, begin, follow
from fedkin.federation.processes import Processes, free_port
from fedkin.federation.state import State, look

LONGEST = 300.0  # seconds in which all sites have to be up
TABLE = "patients.csv"
HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")


def prepare(path: Path, count: int, methods: str, rounds: int, settings: str = "") -> Folder:
    """Write the folder of a federation of so many hospitals, each with the table of its own patients."""
    require(2 <= count <= len(HOSPITALS), f"There are {len(HOSPITALS)} hospitals; take 2 to {len(HOSPITALS)} of them.")
    names, where = HOSPITALS[:count], Address("127.0.0.1", free_port())
    folder = write(
        path,
        names,
        method=methods,
        rounds=rounds,
        address=where,
        target=heart.TARGET,
        data=TABLE,
        settings=settings,
    )
    with TemporaryDirectory() as place:
        tables = heart.hospital_files(place)
        for name in names:
            tables[name].replace(folder.site(name) / TABLE)
    return folder


def play(folder: Folder, shown: Shown) -> State:
    """Start the server and all sites, play the run, and end everything, whatever happens."""
    with Processes(folder.state / "logs", server.surroundings(folder)) as processes, forgotten(folder):
        server.start(folder, processes)
        for name in folder.names:
            command = [sys.executable, "-m", "fedkin.command.cli", "federation", "site", str(folder.site(name))]
            processes.start(name, *command, folder=folder.site(name))
        with Control(folder) as control:
            wait_for_sites(folder, control, processes, shown)
            return follow(folder, control, begin(folder, control, resume=False), shown, processes.check)


def wait_for_sites(folder: Folder, control: Control, processes: Processes, shown: Shown) -> None:
    """Wait until every site is up."""
    end = time.monotonic() + LONGEST
    while True:
        processes.check()
        state = look(folder, control)
        shown(state, [])
        if set(state.sites.values()) == {"online"}:
            return
        if time.monotonic() > end:
            away = ", ".join(name for name, word in state.sites.items() if word != "online")
            raise Unfinished(f"Not all sites came up in {LONGEST:.0f} s ({away}); logs are in {processes.logs}.")
        time.sleep(0.5)


@contextmanager
def forgotten(folder: Folder) -> Iterator[None]:
    """Remove Flower's database when the block is left: it has what sites sent."""
    try:
        yield
    finally:
        for path in folder.state.glob("link.db*"):
            path.unlink()
