"""Chooses by validation samples: settings, or one of several experiments. Meanwhile there are no test samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from fedkin import metrics
from fedkin.data import Data, load
from fedkin.data.federation import Federation
from fedkin.errors import require, unknown
from fedkin.evaluate import kinds_of
from fedkin.runs.callback import Callback
from fedkin.runs.experiment import Experiment
from fedkin.runs.folder import RunFolder
from fedkin.runs.run import Run
from fedkin.runs.session import run
from fedkin.runs.statistics import AVERAGES, in_line

SHARE = 0.2  # of each client's samples that are held out for validation, unless another share is said


@dataclass(frozen=True)
class Aim:
    """What settings are chosen by: a metric of the model by which the method is judged, on validation samples, in the
    last round."""

    metric: str
    kind: str  # of models: post or global
    average: str = "macro"

    def value(self, line: dict[str, Any]) -> float | None:
        """Return the value in the line of a round; None where the round was not scored or the value is not finite."""
        return in_line(line, self.metric).get(self.kind, {}).get(self.average)

    def better(self, value: float | None, other: float | None) -> bool:
        """Whether a value is better than another one; any value is better than none."""
        if value is None or other is None:
            return value is not None
        return bool(metrics.METRICS[self.metric].gain(value, other) > 0)


def aim_of(experiment: Experiment, federation: Federation, average: str = "macro") -> Aim:
    """Return what the settings of an experiment's method are chosen by."""
    if average not in AVERAGES:
        raise unknown("average", average, AVERAGES)
    judged = experiment.method.judged
    kind = judged if judged in kinds_of(experiment.method, common=False) else "post"
    return Aim(metrics.deciding(experiment.metric, federation.task), kind, average)


def with_validation(experiment: Experiment, share: float = SHARE) -> Experiment:
    """Return the experiment with this share of each client's samples for validation, if it has none."""
    data = experiment.data
    if isinstance(data, Federation) or data.validation:
        return experiment
    return replace(experiment, data=replace(data, validation=share))


def validating(federation: Federation) -> Federation:
    """Return the federation with its validation samples where the test samples were.

    A run on it scores validation samples only. No client has the test samples, and their targets are blank.
    """
    validation = federation.validation
    require(
        validation is not None and len(validation.rows),
        "Settings are chosen by validation samples, and no client has any; raise --validation.",
    )
    assert validation is not None
    known = [federation.train.rows, validation.rows, *([] if federation.server is None else [federation.server])]
    blank = torch.ones(len(federation.y), dtype=torch.bool)
    blank[torch.cat(known)] = False
    y = federation.y.masked_fill(blank, 0)
    return replace(federation, y=y, test=validation, validation=None, common=None)


def chosen_by(experiment: Experiment, aim: Aim) -> Experiment:
    """Return the experiment as it is played while settings are chosen: only what they are chosen by is scored."""
    return replace(experiment, score=(aim.kind,), heterogeneity=False)


def play(
    experiment: Experiment,
    federation: Federation,
    folder: Path | None,
    callbacks: Sequence[Callback] = (),
    warn: Callable[[str], None] = print,
) -> Run:
    """Play an experiment on a federation that `validating` gave, or go on with it, or read it if it is finished."""
    place = None if folder is None else RunFolder(folder)
    begun = place is not None and place.begun
    if begun and folder is not None and (stored := Run(folder, asked=experiment.rounds)).finished:
        return stored
    return run(experiment, folder, resume=begun, callbacks=callbacks, warn=warn, federation=federation)


@dataclass(frozen=True)
class Best:
    """The best of several experiments by validation samples, and the value of each, mean over seeds."""

    experiment: Experiment
    number: int  # its place among the candidates
    values: tuple[float | None, ...]
    aim: Aim


def best(
    candidates: Sequence[Experiment],
    *,
    seeds: Sequence[int] | None = None,
    average: str = "macro",
    folder: Path | str | None = None,
    callbacks: Sequence[Callback] = (),
    warn: Callable[[str], None] = print,
) -> Best:
    """Play every candidate and return the one that is best by validation samples; of equals the first.

    Candidates may differ in anything but in what they are chosen by. Those without validation samples hold a fifth of
    each client's samples out, and so does the experiment that is returned. `seeds` are by default a candidate's own.
    The value is that of the last round. With a folder every run is recorded there, and the same call goes on with
    what lies in it.
    """
    require(candidates, "There must be at least one experiment to choose from.")
    loaded: dict[Data, Federation] = {}
    values: list[float | None] = []
    first: Aim | None = None
    ready = [with_validation(candidate) for candidate in candidates]
    for number, candidate in enumerate(ready):
        federation = federation_of(candidate, loaded)
        aim = aim_of(candidate, federation, average)
        first = first or aim
        same = f"The candidates are chosen by {first.metric} and by {aim.metric}; give them one metric."
        require(aim.metric == first.metric, same)
        found: list[float | None] = []
        for seed in seeds or [candidate.seed]:
            place = None if folder is None else Path(folder) / f"candidate-{number}" / f"seed-{seed}"
            played = play(chosen_by(replace(candidate, seed=seed), aim), federation, place, callbacks, warn)
            require(played.finished, "A callback stopped the search; call it again to go on in its folder.")
            found.append(aim.value(played.lines[-1]))
        values.append(mean(found))
    assert first is not None
    chosen = 0
    for number, value in enumerate(values):
        chosen = number if first.better(value, values[chosen]) else chosen
    return Best(ready[chosen], chosen, tuple(values), first)


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of values; None if one of them is missing, or if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def federation_of(experiment: Experiment, loaded: dict[Data, Federation]) -> Federation:
    """Return the federation on which an experiment is validated; data that were loaded are in `loaded`."""
    data = experiment.data
    if isinstance(data, Federation):
        return validating(data)
    if data not in loaded:
        loaded.clear()  # one at a time, because data may be large
        loaded[data] = validating(load(data))
    return loaded[data]
