"""Starts a run of a federation and follows it to its end."""

from __future__ import annotations

import time
from collections.abc import Callable

from fedkin.errors import Unfinished, require
from fedkin.federation.control import Control
from fedkin.federation.folder import Folder
from fedkin.federation.state import State, look, played
from fedkin.federation.texts import notes_after

Shown = Callable[[State, list[str]], None]  # gets the state, and notes that were not shown before
GLANCE = 1.0  # seconds between two looks


def begin(folder: Folder, control: Control, resume: bool) -> int:
    """Start a run, or go on with the one in the folder; returns Flower's number of it."""
    there, active = played(folder), [run for run in control.runs() if not run.ended]
    require(resume or not there, f"{folder.path} holds a run already; go on with --resume, or move its runs/ away.")
    require(there or active or not resume, f"{folder.path} holds no run to go on with; leave --resume out.")
    require(resume or not active, "A run is being played; wait for its end, or go on with --resume.")
    for run in active:  # its process is gone, or is to be
        control.stop(run.number)
    return control.start({"resume": resume})


def follow(
    folder: Folder, control: Control, number: int, shown: Shown, check: Callable[[], None] = lambda: None
) -> State:
    """Show a run until it ends; returns the last state. `check` is called at every look, and may raise."""
    read = 0
    while True:
        check()
        state, fresh = look(folder, control), notes_after(folder.runs, read)
        read += len(fresh)
        shown(state, fresh)
        (run,) = [one for one in control.runs() if one.number == number]
        if run.completed:
            return look(folder, control)
        if run.ended:
            why = f": {run.details}" if run.details else "."
            saved = f"What was played is saved; go on with: fedkin federation run {folder.path} --resume"
            raise Unfinished(f"The run ended before its last round ({run.status}){why} {saved}")
        time.sleep(GLANCE)
