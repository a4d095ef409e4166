"""One method that is tuned: hands out trials to be played, hears of their rounds, and notes how they end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from fedkin.data.federation import Federation
from fedkin.errors import BadInput
from fedkin.runs.callback import Callback, Callbacks, Record
from fedkin.runs.experiment import Experiment
from fedkin.runs.statistics import is_scored
from fedkin.runs.validation import Aim, chosen_by, mean, play
from fedkin.tuning.budget import Settings

if TYPE_CHECKING:
    from fedkin.tuning.study import Study


@dataclass(frozen=True)
class Attempt:
    """A trial as it is played: an experiment for each seed, and the folder in which the runs are kept meanwhile."""

    number: int  # Optuna's, from 0
    settings: Settings
    experiments: tuple[Experiment, ...]
    aim: Aim
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.experiments[0].method.name} trial {self.number + 1}"


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended: its value, mean over seeds; whether it was stopped on the way; or why it failed."""

    value: float | None = None
    stopped: bool = False
    why: str = ""


Watching = Callable[[Attempt], Callback | None]  # who else is told of the rounds of an attempt


def nobody(attempt: Attempt) -> None:
    """Tell nobody."""


def silent(sentence: str) -> None:
    """Say nothing: what a run would warn of is said once for all trials, or by the run with the best settings."""


def played(attempt: Attempt, federation: Federation, callback: Callback) -> Outcome:
    """Play an attempt on the federation that its settings are chosen by. Bad input is why it failed."""
    values: list[float | None] = []
    try:
        for experiment in attempt.experiments:
            folder = attempt.folder / f"seed-{experiment.seed}"
            run = play(chosen_by(experiment, attempt.aim), federation, folder, [callback], silent)
            if not run.finished:
                return Outcome(stopped=True)
            values.append(attempt.aim.value(run.lines[-1]))
    except BadInput as error:
        return Outcome(why=str(error))
    return Outcome(mean(values))


@dataclass
class Reporting(Callback):
    """Reports the rounds of an attempt's first seed, and gives the attempt up when it falls behind."""

    study: Study
    attempt: Attempt
    given_up: bool = False

    def recorded(self, record: Record) -> bool:
        if record.seed == self.attempt.experiments[0].seed and is_scored(record.line):
            value = self.attempt.aim.value(record.line)
            self.given_up = self.study.report(self.attempt.number, record.round, value)
        return not self.given_up


@dataclass
class Search:
    """The attempts of one method."""

    experiment: Experiment
    seeds: tuple[int, ...]
    study: Study
    folder: Path  # of the attempts that are played
    watching: Watching = nobody
    playing: dict[int, Reporting] = field(default_factory=dict)

    def next(self) -> Attempt | None:
        """Return the next attempt to be played; None if there is none."""
        found = self.study.next()
        if found is None:
            return None
        number, settings = found
        method = self.study.with_settings(settings)
        experiments = tuple(replace(self.experiment, method=method, seed=seed) for seed in self.seeds)
        return Attempt(number, settings, experiments, self.study.aim, self.folder / f"trial-{number}")

    def callback(self, attempt: Attempt) -> Callback:
        """Return who is told of the rounds of an attempt, and may stop it."""
        reporting = self.playing[attempt.number] = Reporting(self.study, attempt)
        other = self.watching(attempt)
        return Callbacks((reporting, *([] if other is None else [other])))

    def given_up(self, attempt: Attempt) -> bool:
        """Whether an attempt that is played fell behind; else it is somebody who wants it to stop."""
        return self.playing[attempt.number].given_up

    def ended(self, attempt: Attempt, outcome: Outcome) -> bool:
        """Note how an attempt ended; returns False if it was stopped by somebody and is to be gone on with later."""
        given_up = self.playing.pop(attempt.number).given_up and outcome.stopped
        if outcome.stopped and not given_up:
            return False
        self.study.tell(attempt.number, outcome.value, given_up, outcome.why)
        rmtree(attempt.folder, ignore_errors=True)
        return True


def play_in_sequence(search: Search, federation: Callable[[Experiment], Federation]) -> bool:
    """Play all attempts one after another; returns False if somebody stopped them."""
    while (attempt := search.next()) is not None:
        outcome = played(attempt, federation(attempt.experiments[0]), search.callback(attempt))
        if not search.ended(attempt, outcome):
            return False
    return True
