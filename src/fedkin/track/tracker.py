"""What all trackers have in common: one run of theirs for each run of ours, and no point twice when a run goes on."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any

from fedkin.errors import BadInput
from fedkin.runs.callback import Callback, Record
from fedkin.runs.folder import RunFolder

Parameters = dict[str, str | int | float | bool]

CLIENTS = ("selected", "replied", "kept")
COST = ("uploads", "downloads", "bytes_up", "bytes_down")


@dataclass(frozen=True)
class Tracked:
    """A run of ours as a tracker knows it."""

    name: str  # 'fedavg/seed-0'
    method: str
    seed: int
    folder: RunFolder | None  # None: the run lies nowhere and cannot go on later


class Tracker(Callback):
    """Tells another project's tracker of runs. `for_run` gives the callback of one run.

    A tracker that fails says so once and is told no more; the run goes on.
    """

    package = ""  # what is imported
    extra = ""  # of fedkin, that installs it; also the tracker's name in the command and in folders

    def for_run(self, method: str, seed: int, folder: Path | None) -> Callback:
        name = f"{method}/{f'seed-{seed}' if folder is None else folder.name}"
        place = None if folder is None else RunFolder(folder)
        return TrackedRun(self.extra, lambda first, about: self.open(Tracked(name, method, seed, place), first, about))

    @classmethod
    def at_hand(cls) -> Any:
        """Return the package of the tracker; a sentence says how to install it where it is not."""
        try:
            return import_module(cls.package)
        except ImportError:
            raise BadInput(f"--track {cls.extra} needs a package: pip install 'fedkin[{cls.extra}]'.") from None

    @abstractmethod
    def open(self, run: Tracked, first: int, experiment: dict[str, Any]) -> Writer:
        """Begin or go on with the tracker's run. `first` is the first round that it will be told of."""


class Writer:
    """An open run of a tracker."""

    last = 0  # the last round that it knows already, from before the run was stopped

    def log(self, round: int, numbers: dict[str, float]) -> None:
        """Take the numbers of a round."""

    def flush(self) -> None:
        """Store what was taken, because a checkpoint of it lies on the disk."""

    def close(self, finished: bool) -> None:
        """End; `finished`: all rounds of the run are played."""


class TrackedRun(Callback):
    """Tells a tracker of one run."""

    def __init__(self, name: str, open_writer: Callable[[int, dict[str, Any]], Writer]):
        self.name, self.open_writer = name, open_writer
        self.experiment: dict[str, Any] = {}
        self.writer: Writer | None = None
        self.failed = False

    def begun(self, experiment: dict[str, Any]) -> None:
        self.experiment = experiment

    def recorded(self, record: Record) -> None:
        def log() -> None:
            self.writer = self.writer or self.open_writer(record.round, self.experiment)
            if record.round > self.writer.last:
                self.writer.log(record.round, numbers(record.line))

        self.attempt(log)

    def saved(self, round: int) -> None:
        if self.writer is not None:
            self.attempt(self.writer.flush)

    def ended(self, finished: bool) -> None:
        if self.writer is not None:
            writer, self.writer = self.writer, None
            self.attempt(lambda: writer.close(finished))

    def attempt(self, action: Callable[[], None]) -> None:
        """Do something with the tracker, unless it failed before; a failure of it is no reason to stop a run."""
        if self.failed:
            return
        try:
            action()
        except Exception as error:  # whatever the other project raises
            self.failed = True
            print(f"Tracking with {self.name} ends here: {error}. The run goes on.", file=sys.stderr)


def numbers(line: dict[str, Any]) -> dict[str, float]:
    """Return the numbers of a round by their names in a tracker, as 'accuracy/post/macro' and 'cost/uploads'."""
    groups = dict.fromkeys(CLIENTS, "clients") | dict.fromkeys(COST, "cost")
    found: dict[str, float] = {}
    for name, value in line.items():
        if name in ("dropped", "clipped"):
            found[f"clients/{name}"] = float(len(value))
        elif name != "round":
            found |= flat(value, f"{groups[name]}/{name}" if name in groups else name)
    return {name: value for name, value in found.items() if isfinite(value)}


def flat(value: Any, path: str) -> dict[str, float]:
    """Return the numbers in nested dictionaries, by their paths."""
    if isinstance(value, dict):
        return {name: inner for key, each in value.items() for name, inner in flat(each, f"{path}/{key}").items()}
    return {path: float(value)} if isinstance(value, int | float) and not isinstance(value, bool) else {}


def parameters(experiment: dict[str, Any], path: str = "") -> Parameters:
    """Return an experiment as a tracker's parameters: 'method.train.eta': 0.02. What is null is the text 'null'."""
    found: Parameters = {}
    for name, value in experiment.items():
        where = f"{path}.{name}" if path else name
        if isinstance(value, dict):
            found |= parameters(value, where)
        else:
            found[where] = (
                value if isinstance(value, bool | int | float | str) else "null" if value is None else str(value)
            )
    return found
