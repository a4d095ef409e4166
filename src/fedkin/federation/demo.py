"""A federation of real hospitals on this machine alone: a server and sites, each a process of its own, with TLS and
keys as between machines."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import torch

from fedkin.data import Data, load
from fedkin.errors import Unfinished, require
from fedkin.federation import server
from fedkin.federation.control import Control
from fedkin.federation.folder import Address, Folder, write
from fedkin.federation.follow import Shown, begin, follow
from fedkin.federation.processes import Processes, free_port
from fedkin.federation.state import State, look

LONGEST = 300.0  # seconds in which all sites have to be up
TABLE = "patients.npz"


def prepare(path: Path, count: int, methods: str, rounds: int, settings: str = "") -> Folder:
    """Write the folder of a federation of so many hospitals, each with its own patients."""
    data = load(Data("heart"))
    require(2 <= count <= data.n, f"There are {data.n} hospitals; take 2 to {data.n} of them with --sites.")
    names = data.names[:count]
    where = Address("127.0.0.1", free_port())
    folder = write(path, names, method=methods, rounds=rounds, address=where, data=TABLE, settings=settings)
    for number, name in enumerate(names):
        one = data.only(torch.tensor([number]))
        splits = {"train": one.train.rows, "test": one.test.rows}
        arrays = {f"x_{split}": one.x[rows].numpy() for split, rows in splits.items()}
        arrays |= {f"y_{split}": one.y[rows].numpy() for split, rows in splits.items()}
        np.savez(folder.site(name) / TABLE, **arrays)
    return folder


def play(folder: Folder, shown: Shown) -> State:
    """Start the server and all sites, play the run, and end everything, whatever happens."""
    with Processes(folder.state / "logs", server.surroundings(folder)) as processes:
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
