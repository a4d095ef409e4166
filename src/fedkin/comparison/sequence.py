"""Plays the runs of a plan one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fedkin.comparison.plan import Loaded, Planned
from fedkin.runs.callback import Callback, Callbacks
from fedkin.runs.resume import mended
from fedkin.runs.session import run

Watching = Callable[[Planned, int, int], Callback | None]  # (run, its number, of how many) -> who is told of its rounds


def nobody(planned: Planned, number: int, of: int) -> None:
    """Tell nobody."""


def told(callbacks: Sequence[Callback]) -> Callable[[Planned, int, int], Callback]:
    """Tell these callbacks of every run, each by the one that it has for that run."""

    def watching(planned: Planned, number: int, of: int) -> Callback:
        experiment = planned.experiment
        return Callbacks(tuple(callbacks)).for_run(experiment.method.name, experiment.seed, planned.folder.path)

    return watching


def once(warn: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function that says each sentence once, however many runs say it."""
    said: set[str] = set()

    def warned(sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            warn(sentence)

    return warned


def mend(runs: Sequence[Planned], warn: Callable[[str], None]) -> None:
    """Let runs that are done, but of which files are damaged, go on from their last checkpoint: it makes them anew."""
    for one in runs:
        mended(one.folder, one.name, warn)


def play_in_sequence(
    runs: list[Planned],
    loaded: Loaded,
    *,
    resume: bool = False,
    watching: Watching = nobody,
    warn: Callable[[str], None] = print,
) -> bool:
    """Play every run that is not done; returns False if one of them was stopped on the way."""
    for number, one in enumerate(runs, 1):
        if one.done:
            continue
        callback = watching(one, number, len(runs))
        result = run(
            one.experiment,
            one.folder.path,
            resume=resume and one.folder.begun,
            callbacks=[] if callback is None else [callback],
            warn=warn,
            federation=loaded(one.experiment),
            profile=one.profile,
        )
        if not result.finished:
            return False
    return True
