"""How a federation is doing: which sites are up, what is played, and how good the sites' models are."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fedkin.federation.control import Control
from fedkin.federation.folder import Folder
from fedkin.federation.texts import methods_of
from fedkin.runs.folder import RunFolder
from fedkin.runs.run import Run


@dataclass(frozen=True)
class Played:
    """A run as far as it has come. `scores` has the metric that decides, of each site's own model."""

    method: str
    round: int
    rounds: int
    metric: str = "accuracy"
    scores: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)  # training samples

    @property
    def mean(self) -> float | None:
        """The mean over sites that have a score."""
        known = [score for score in self.scores.values() if not np.isnan(score)]
        return float(np.mean(known)) if known else None

    @property
    def finished(self) -> bool:
        return self.round >= self.rounds


@dataclass(frozen=True)
class State:
    """How a federation is doing now."""

    sites: dict[str, str]  # by name: 'online', or another word of Flower's
    status: str  # of the last run, as Flower has it; '' before the first
    details: str
    played: list[Played]

    @property
    def now(self) -> Played | None:
        """The method that is played now, or was played last."""
        return self.played[-1] if self.played else None


def look(folder: Folder, control: Control | None) -> State:
    """Return how a federation is doing; without a control only what lies in the folder is known."""
    sites = control.up() if control is not None else dict.fromkeys(folder.names, "not known")
    runs = control.runs() if control is not None else []
    status, details = (runs[-1].status, runs[-1].details) if runs else ("", "")
    return State(sites, status, details, played(folder))


def run_folders(folder: Folder) -> list[tuple[str, Path]]:
    """Return the methods of a federation, each with the folder of its run."""
    config = folder.config()
    methods = methods_of(config["method"], config.get("set", ""))
    runs = folder.path / str(config["folder"])
    return [(method.name, runs / method.name / f"seed-{config['seed']}") for method in methods]


def played(folder: Folder) -> list[Played]:
    """Return the runs that have begun, in the order in which they are played."""
    rounds = int(folder.config()["rounds"])
    return [read(name, path, rounds) for name, path in run_folders(folder) if RunFolder(path).begun]


def read(method: str, path: Path, rounds: int) -> Played:
    """Return how far a run has come."""
    run = Run(path)
    found = run.last().get(run.judged) if run.scored else None
    about = run.about_clients
    names = about["names"]
    scores = {} if found is None else dict(zip(names, map(float, found), strict=True))
    return Played(
        method, run.reached, rounds, run.metric, scores, dict(zip(names, about.get("train", []), strict=False))
    )
