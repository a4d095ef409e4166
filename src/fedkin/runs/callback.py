"""Whoever wants to know what happens in a run is a callback: the recorder, the progress display, a tracker of yours."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from fedkin.engines.engine import Score
from fedkin.messages import Kin
from fedkin.runs.pulse import Doing


@dataclass(frozen=True)
class Record:
    """One round as the record has it. `line` is what rounds.jsonl says of the round."""

    method: str
    seed: int
    round: int
    rounds: int  # of the whole run
    trained: int  # clients that trained in this round
    line: dict[str, Any]
    selected: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # (m,) the ids of the clients
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (m,) how far each update counted; nan: no reply
    scores: dict[str, Score] | None = None  # by kind, on scored rounds
    kin: Kin | None = None  # who learned from whom, on the rounds whose pictures are kept
    marks: dict[str, Tensor] = field(default_factory=dict)  # what parts think of each client, on those rounds too

    @property
    def accuracy(self) -> dict[str, dict[str, float | None]] | None:
        """The macro and micro accuracies by kind; None on rounds that were not scored."""
        return self.line.get("accuracy")

    def measured(self, metric: str) -> dict[str, dict[str, float | None]]:
        """Return the macro and micro values of a metric by kind; empty on rounds that were not scored."""
        found: dict[str, dict[str, float | None]] = self.line.get("metrics", {}).get(metric, {})
        return self.accuracy or {} if metric == "accuracy" else found

    @property
    def dropped(self) -> list[int]:
        """The clients whose training or upload was not finite, or did not fit."""
        found: list[int] = self.line.get("dropped", [])
        return found

    def brief(self) -> Record:
        """Return the record without its tensors, for another process: a tensor would need its process to live on."""
        return replace(self, scores=None, kin=None, marks={})


class Callback:
    """Is told what happens in a run. Every function does nothing unless a subclass redefines it."""

    def for_run(self, method: str, seed: int, folder: Path | None) -> Callback:
        """Return who is told of this run: the same callback for all runs, unless a subclass keeps its runs apart."""
        return self

    def begun(self, experiment: dict[str, Any]) -> None:
        """Called before the first round that is played now, with what experiment.json says."""

    def working(self, doing: Doing) -> None:
        """Called while a round is played, about twice a second, with how far it is; never in a round that is quick."""

    def recorded(self, record: Record) -> bool | None:
        """Called after every round, when it was scored and recorded. False asks the run to stop after this round."""
        return None

    def saved(self, round: int) -> None:
        """Called when a checkpoint of this round lies on the disk."""

    def ended(self, finished: bool) -> None:
        """Called after the last round that is played now; `finished`: all rounds of the run are played."""


@dataclass(frozen=True)
class Callbacks(Callback):
    """Several callbacks as one. Each is told everything, whatever another one answers."""

    each: tuple[Callback, ...]

    def for_run(self, method: str, seed: int, folder: Path | None) -> Callbacks:
        return Callbacks(tuple(callback.for_run(method, seed, folder) for callback in self.each))

    def begun(self, experiment: dict[str, Any]) -> None:
        for callback in self.each:
            callback.begun(experiment)

    def working(self, doing: Doing) -> None:
        for callback in self.each:
            callback.working(doing)

    def recorded(self, record: Record) -> bool:
        answers = [callback.recorded(record) for callback in self.each]
        return not any(answer is False for answer in answers)

    def saved(self, round: int) -> None:
        for callback in self.each:
            callback.saved(round)

    def ended(self, finished: bool) -> None:
        for callback in self.each:
            callback.ended(finished)
