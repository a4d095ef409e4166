"""A run of fedkin on Flower's grid, from a ServerApp."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from flwr.serverapp import Grid

from fedkin import sites as remote
from fedkin.flower.grid import OnGrid
from fedkin.runs import Experiment, Run
from fedkin.runs.callback import Callback
from fedkin.sites.uploads import TooLarge


def run(
    grid: Grid,
    experiment: Experiment,
    folder: Path | str | None = None,
    *,
    sites: int | Collection[str] = 2,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    wait: float = 600.0,
    timeout: float = 600.0,
    patience: float = 3600.0,
    largest: float | None = 50.0,
    too_large: TooLarge = "drop",
    registered: bool = False,
    warn: Callable[[str], None] = print,
) -> Run:
    """Play an experiment on the nodes of a grid, each a site that runs `fedkin.flower.client`.

    It waits at most `wait` seconds for so many `sites`, or for those with these names. In a round it waits `timeout`
    seconds for answers, and goes on without those that do not come; where nobody answers it waits `patience` seconds
    and then ends. An upload more than `largest` times as large as those of the others does not count or, with
    `too_large="clip"`, is shortened to their length. With `registered` a site may only have the name under which the
    SuperLink knows its key. Everything else is as in `fk.run`.
    """
    transport = OnGrid(grid, warn, registered=registered)
    limits: dict[str, Any] = {"largest": largest, "too_large": too_large}
    met = remote.meet(transport, sites, wait=wait, timeout=timeout, patience=patience, warn=warn, **limits)
    return remote.run(met, experiment, folder, resume=resume, callbacks=callbacks)
