"""How a federation is shown: a table that moves on a terminal, plain lines elsewhere, and the comparison at the end."""

from __future__ import annotations

from types import TracebackType

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fedkin.federation.state import Played, State
from fedkin.metrics import METRICS

UP = {"online": "up", "offline": "away", "registered": "not seen yet"}


class View:
    """Shows states as they come."""

    def __init__(self, screen: Console):
        self.screen = screen
        self.live = Live(console=screen, refresh_per_second=4, transient=True) if screen.is_terminal else None
        self.said = ""  # the last line ...
        self.noted: set[str] = set()  # ... and all notes

    def __enter__(self) -> View:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def show(self, state: State, notes: list[str]) -> None:
        """Show a state, and above it notes that were not shown before; each method of a run notes the same."""
        for note in dict.fromkeys(note for note in notes if note not in self.noted):
            self.noted.add(note)
            self.screen.print(note, style="yellow", highlight=False, markup=False, soft_wrap=True)
        if self.live is not None:
            self.live.update(picture(state))
        elif (line := in_words(state)) != self.said:
            self.said = line
            self.screen.print(line, highlight=False, markup=False, soft_wrap=True)


def picture(state: State) -> Group:
    """Return a row for each site, and a line on what is played."""
    table, now = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0)), state.now
    for head in ("site", "state", "training samples", METRICS[now.metric].label if now else "accuracy"):
        table.add_column(head, justify="left" if head in ("site", "state") else "right")
    for name, word in state.sites.items():
        size = "" if now is None else str(now.sizes.get(name, ""))
        score = "" if now is None or name not in now.scores else shown(now, now.scores[name])
        table.add_row(name, Text(UP.get(word, word), "green" if word == "online" else "yellow"), size, score)
    return Group(table, Text(doing(state), "bold"))


def in_words(state: State) -> str:
    """Return a state as one line."""
    up = [name for name, word in state.sites.items() if word == "online"]
    return f"{len(up)} of {len(state.sites)} sites are up; {doing(state)}"


def doing(state: State) -> str:
    """Return what is played, as words."""
    now = state.now
    if now is None:
        return "no run yet" if not state.status else f"the run is {state.status}"
    mean = "" if now.mean is None else f", mean {METRICS[now.metric].label} {shown(now, now.mean)}"
    return f"{now.method}: round {now.round} of {now.rounds}{mean}"


def shown(played: Played, value: float) -> str:
    """Return a score as people read it."""
    if np.isnan(value):
        return "-"
    return f"{100 * value:.1f} %" if METRICS[played.metric].percent else f"{value:.3f}"


def compared(played: list[Played]) -> Table:
    """Return a row for each site and a column for each method: how good the site's own model is."""
    table = Table("site", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for one in played:
        table.add_column("alone" if one.method == "local" else one.method, justify="right")
    for name in played[0].sizes or played[0].scores:
        table.add_row(name, *(shown(one, one.scores.get(name, float("nan"))) for one in played))
    table.add_row("mean", *("-" if one.mean is None else shown(one, one.mean) for one in played), style="bold")
    return table
