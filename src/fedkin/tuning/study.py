"""The trials of one method in an Optuna study: which settings are next, what came of them, which to give up early.

The study lies in an SQLite file, in which every trial and every reported round is stored when it happens. Nothing else
is remembered: each trial is drawn with a seed of its own, so a study that was killed goes on as if it had not been.
This file is the only one that imports Optuna.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler, GridSampler, TPESampler
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy import event
from sqlalchemy.engine import URL

from fedkin.errors import BadInput
from fedkin.metrics import METRICS
from fedkin.parts import Method
from fedkin.runs.files import Damaged
from fedkin.runs.settings import parsed, with_settings
from fedkin.runs.validation import Aim
from fedkin.tuning.budget import Budget, Settings, Tried
from fedkin.tuning.space import Axis, Choices, Range, Space

STARTUP = 5  # trials that are drawn at random, and none of which is given up
WARM_UP = 4  # no trial is given up in the first quarter of its rounds
REPORTS = 20  # rounds of a trial that are noted
ROOM = 2**18  # bytes that SQLite takes for itself before it stores anything
REFUSED = 20  # settings that the method refuses are drawn again, up to so many times the number of trials
WORDS = {"COMPLETE": "done", "PRUNED": "given up", "FAIL": "failed", "RUNNING": "begun", "WAITING": "waiting"}


class Grid(GridSampler):
    """Optuna's grid. What it does after the last trial is for its own loop, and ours counts by itself."""

    def after_trial(self, *_: Any) -> None:
        pass


@dataclass
class Study:
    """The trials of one method."""

    method: Method
    space: Space
    aim: Aim
    budget: Budget
    rounds: int
    stored: optuna.Study
    open: dict[int, Trial] = field(default_factory=dict)  # the trials that are played now, by number

    def next(self) -> tuple[int, Settings] | None:
        """Return the number and the settings of the next trial to be played, one that was begun before first.

        None if all trials are played or being played. Settings that were tried before get the same value at once.
        """
        while (trial := self.begun_before() or self.drawn()) is not None:
            found = self.suggested(trial)
            if self.refused(trial, found) or self.repeated(trial, found):
                continue
            self.open[trial.number] = trial
            return trial.number, found
        return None

    def begun_before(self) -> Trial | None:
        """Return a trial that was being played when the last command ended."""
        for trial in self.frozen(TrialState.RUNNING):
            if trial.number not in self.open:
                self.stored.sampler = self.sampler(trial.number)
                return Trial(self.stored, trial._trial_id)
        return None

    def drawn(self) -> Trial | None:
        """Return a new trial, as long as there are fewer than the budget allows."""
        there = self.frozen(TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING)
        counted = sum(not trial.user_attrs.get("refused") for trial in there)
        if counted >= self.budget.trials:
            return None
        if len(there) >= REFUSED * self.budget.trials:
            last = next(trial for trial in reversed(there) if trial.user_attrs.get("refused"))
            raise BadInput(f"{self.method.name} refuses nearly all settings of its space: {last.user_attrs['why']}")
        self.stored.sampler = self.sampler(len(there))
        return self.stored.ask()

    def sampler(self, number: int) -> BaseSampler:
        """Return what draws the settings of this trial. Its seed is the trial's, so that nothing has to be remembered
        from one trial to the next; only a grid is shuffled once for all trials."""
        if self.budget.grid:
            return Grid({path: axis.ends for path, axis in self.space.items()}, seed=self.budget.seed)
        seed = np.random.SeedSequence([self.budget.seed, number]).generate_state(1)[0]
        return TPESampler(n_startup_trials=STARTUP, seed=int(seed))

    def suggested(self, trial: Trial) -> Settings:
        """Return the settings of a trial."""
        return {path: axis.text(suggest(trial, path, axis)) for path, axis in self.space.items()}

    def refused(self, trial: Trial, settings: Settings) -> bool:
        """Whether the method refuses these settings; then the trial is over and, but for a grid, does not count."""
        try:
            self.with_settings(settings)
        except BadInput as error:
            trial.set_user_attr("refused", not self.budget.grid)
            self.fail(trial, str(error))
            return True
        return False

    def repeated(self, trial: Trial, settings: Settings) -> bool:
        """Whether these settings were tried before; then the trial is over with the same value."""
        before = self.frozen(TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
        same = next((other for other in before if self.settings_of(other) == settings), None)
        if same is None:
            return False
        for step, value in same.intermediate_values.items():
            if step not in reported(trial):
                trial.report(value, step)
        trial.set_user_attr("why", same.user_attrs.get("why") or f"as trial {same.number + 1}")
        self.stored.tell(trial, same.value if same.state is TrialState.COMPLETE else None, same.state)
        return True

    def with_settings(self, settings: Settings) -> Method:
        """Return the method with these settings."""
        return with_settings(self.method, [f"{path}={text}" for path, text in settings.items()])

    def report(self, number: int, round: int, value: float | None) -> bool:
        """Note the value of a scored round; returns whether the trial should be given up.

        Of every twentieth of the rounds the first scored one is noted, because a note takes a moment to be stored.
        """
        trial, apart = self.open[number], max(1, self.rounds // REPORTS)
        last = max(reported(trial), default=0)
        if value is None or (round // apart <= last // apart and round < self.rounds):
            return False
        if round > last:
            trial.report(value, round)
        return round < self.rounds and trial.should_prune()

    def tell(self, number: int, value: float | None, given_up: bool = False, why: str = "") -> None:
        """Note how a trial ended: with a value, given up, or failed."""
        trial = self.open.pop(number)
        if given_up:
            self.stored.tell(trial, state=TrialState.PRUNED)
        elif value is None:
            self.fail(trial, why or f"its {METRICS[self.aim.metric].label} is not a finite number")
        else:
            self.stored.tell(trial, value)

    def fail(self, trial: Trial, why: str) -> None:
        trial.set_user_attr("why", why)
        self.stored.tell(trial, state=TrialState.FAIL)

    def frozen(self, *states: TrialState) -> list[FrozenTrial]:
        """Return the trials in these states, in the order in which they were begun."""
        return self.stored.get_trials(deepcopy=False, states=states)

    def settings_of(self, trial: FrozenTrial) -> Settings:
        return {path: axis.text(trial.params[path]) for path, axis in self.space.items() if path in trial.params}

    def tried(self) -> list[Tried]:
        """Return the trials that count, the best first, then those given up, then the failed ones."""
        states = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING)
        found = [self.as_tried(trial) for trial in self.frozen(*states) if not trial.user_attrs.get("refused")]
        order = list(WORDS.values())
        sign = -1 if METRICS[self.aim.metric].higher_is_better else 1
        return sorted(found, key=lambda one: (order.index(one.state), sign * (one.value or 0.0), one.number))

    def as_tried(self, trial: FrozenTrial) -> Tried:
        value = trial.value if trial.state in (TrialState.COMPLETE, TrialState.PRUNED) else None
        why = trial.user_attrs.get("why", "")
        return Tried(trial.number + 1, self.settings_of(trial), WORDS[trial.state.name], value, trial.last_step, why)


def suggest(trial: Trial, path: str, axis: Axis) -> Any:
    """Let the study suggest a value, or give back the one that it suggested before."""
    if isinstance(axis, Choices):
        return trial.suggest_categorical(path, axis.texts)
    if axis.whole:
        return trial.suggest_int(path, int(axis.low), int(axis.high), log=axis.log)
    return trial.suggest_float(path, axis.low, axis.high, log=axis.log)


def reported(trial: Trial) -> set[int]:
    """Return the rounds of a trial whose values are stored."""
    return set(trial.study.get_trials(deepcopy=False)[trial.number].intermediate_values)


@contextmanager
def opened(path: Path, method: Method, space: Space, aim: Aim, budget: Budget, rounds: int) -> Iterator[Study]:
    """Open the study in a file, or begin it; its first trial is the method as it is, where the space has it."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with told(path):
        yield from opened_study(path, method, space, aim, budget, rounds)


def opened_study(path: Path, method: Method, space: Space, aim: Aim, budget: Budget, rounds: int) -> Iterator[Study]:
    """Yield the study, and close its file afterwards."""
    storage = stored_at(path)
    warm_up = max(1, rounds // WARM_UP)
    pruner = optuna.pruners.MedianPruner(STARTUP, warm_up) if budget.prune else optuna.pruners.NopPruner()
    higher = METRICS[aim.metric].higher_is_better
    try:
        stored = optuna.create_study(
            storage=storage,
            study_name=method.name,
            direction="maximize" if higher else "minimize",
            pruner=pruner,
            load_if_exists=True,
        )
        now = as_it_is(method, space)
        if now is not None and not stored.trials and not budget.grid:
            stored.enqueue_trial(now)
        yield Study(method, space, aim, budget, rounds, stored)
    finally:
        storage.remove_session()
        storage.engine.dispose()


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Say what is wrong with the file of a study, where that is what ends the block: no room on the disk, or damage."""
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, sqlite3.Error):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        disk = os.statvfs(path.parent)
        if "is full" in str(cause) or disk.f_bavail * disk.f_frsize < ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        raise Damaged(f"{path} is damaged: {cause}; remove it to have its trials played anew") from error


def stored_at(path: Path) -> optuna.storages.RDBStorage:
    """Open the file of a study. It is written ahead (WAL), so that a kill at any moment leaves it whole and a note does
    not wait for the disk."""
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA journal_mode=WAL")
    url = URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)
    storage = optuna.storages.RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 60}})
    event.listen(storage.engine, "connect", lambda line, _: line.execute("PRAGMA synchronous=NORMAL"))
    storage.engine.dispose()  # connections from now on are such
    return storage


def as_it_is(method: Method, space: Space) -> dict[str, Any] | None:
    """Return the settings that the method has, as the space says them; None where they are not in it."""
    found: dict[str, Any] = {}
    for path, axis in space.items():
        value: Any = method
        for name in path.split("."):
            value = getattr(value, name)
        if isinstance(axis, Range):
            if not isinstance(value, int | float) or not axis.low <= value <= axis.high:
                return None
            found[path] = value
        else:
            same = [text for text in axis.texts if parsed(text) == value]
            if not same:
                return None
            found[path] = same[0]
    return found
