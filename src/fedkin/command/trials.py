"""What a user sees while methods are tuned: a bar for each trial on a terminal, and a line when it ends."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from rich.progress import TaskID

from fedkin.command.progress import Progress
from fedkin.metrics import METRICS
from fedkin.runs.callback import Callback, Record
from fedkin.runs.pulse import Doing
from fedkin.tuning.search import Attempt


@dataclass
class TrialProgress:
    """Shows every trial that is played, and how many each method has."""

    progress: Progress
    trials: dict[str, int]  # by method
    best: dict[str, float] = field(default_factory=dict)  # by method, of the trials that were played now

    def watching(self, attempt: Attempt) -> Callback:
        """Return a callback that shows one trial."""
        return OneTrial(self, attempt)


class OneTrial(Callback):
    """Shows one trial: its settings, its rounds, and in the end its validation value."""

    def __init__(self, shown: TrialProgress, attempt: Attempt):
        self.shown, self.attempt = shown, attempt
        method = attempt.experiments[0].method.name
        settings = " ".join(f"{path}={text}" for path, text in attempt.settings.items())
        self.method, self.title = method, f"{method} trial {attempt.number + 1}/{shown.trials[method]}: {settings}"
        self.value: float | None = None
        self.round, self.left = 0, len(attempt.experiments)
        self.began, self.bar = time.monotonic(), self.new_bar()

    def new_bar(self) -> TaskID | None:
        progress, attempt = self.shown.progress, self.attempt
        if not progress.screen.is_terminal:
            return None
        total = attempt.experiments[0].rounds * len(attempt.experiments)
        return progress.bar.add_task(self.title, total=total, seen="")

    def working(self, doing: Doing) -> None:
        if self.bar is not None:
            self.shown.progress.bar.update(self.bar, seen=f"{doing.far} {self.words()}")

    def recorded(self, record: Record) -> bool:
        found = self.attempt.aim.value(record.line)
        self.value = self.value if found is None else found
        self.round = record.round
        if self.bar is not None:
            done = (len(self.attempt.experiments) - self.left) * record.rounds + record.round
            self.shown.progress.bar.update(self.bar, completed=done, seen=self.words())
        return not self.shown.progress.stopping

    def ended(self, finished: bool) -> None:
        self.left -= 1
        if finished and self.left:
            return
        progress = self.shown.progress
        if self.bar is not None:
            progress.bar.remove_task(self.bar)
        if progress.stopping:
            return
        how = self.words() if finished else f"given up in round {self.round} at {self.words()}"
        progress.say(f"{self.title}: {how}, {time.monotonic() - self.began:.1f} s")

    def words(self) -> str:
        """Return the last validation value, as a person reads it."""
        if self.value is None:
            return ""
        aim: Any = self.attempt.aim
        metric = METRICS[aim.metric]
        value = f"{100 * self.value:.2f} %" if metric.percent else f"{self.value:.4f}"
        return f"validation {metric.label} {value}"
