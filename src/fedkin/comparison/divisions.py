"""The data that everything is repeated on in a comparison: divisions into train and test, several data seeds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fedkin.data import Data
from fedkin.data.divide import divided_again
from fedkin.data.federation import Federation
from fedkin.errors import require
from fedkin.runs.experiment import Experiment


def split_of(experiment: Experiment) -> int:
    """Return the number of the division into train and test that an experiment is on."""
    data = experiment.data
    return data.split if isinstance(data, Data) else int(str(data.source.get("split", 0)))


def on_split(experiment: Experiment, number: int) -> Experiment:
    """Return the experiment on another division of the same samples into train and test."""
    data = experiment.data
    other = replace(data, split=number) if isinstance(data, Data) else divided_again(data, number)
    return replace(experiment, data=other)


def data_seed_of(experiment: Experiment) -> int:
    """Return the seed of an experiment's data; 0 where they were handed over."""
    return experiment.data.seed if isinstance(experiment.data, Data) else 0


@dataclass(frozen=True)
class Division:
    """Data that all methods of a comparison are run on. What there is only one of has no number."""

    data: Data | Federation | None = None  # None: each experiment's own
    split: int | None = None
    data_seed: int | None = None
    place: int = 0  # of the data's seed among all


def divisions(experiment: Experiment, splits: int, data_seeds: int) -> list[Division]:
    """Return the data of an experiment with so many seeds, each on so many divisions into train and test; both are
    numbered from those of the experiment."""
    if splits == data_seeds == 1:
        return [Division()]
    found, split, seed = [], split_of(experiment), data_seed_of(experiment)
    for place in range(data_seeds):
        moved = experiment
        if data_seeds > 1:
            sentence = "--data-seeds divides data anew, and these were handed over divided; hand over an fk.Data."
            require(isinstance(experiment.data, Data), sentence)
            moved = replace(experiment, data=replace(experiment.data, seed=seed + place))  # type: ignore[arg-type]
        for number in range(split, split + splits):
            data = on_split(moved, number).data if splits > 1 else moved.data
            several = number if splits > 1 else None, seed + place if data_seeds > 1 else None
            found.append(Division(data, *several, place))
    return found
