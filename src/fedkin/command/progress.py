"""What a user sees while runs are played: bars on a terminal, plain lines elsewhere; and Ctrl-C that loses nothing."""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from threading import Event, Thread
from types import FrameType, TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from fedkin.comparison.plan import Planned
from fedkin.metrics import METRICS, default
from fedkin.runs.callback import Callback, Record
from fedkin.runs.pulse import Doing

QUIET_SECONDS = 5.0  # between two plain lines of a run, at least ...
LINES = 0.05  # ... and this part of its time
STOPS = (signal.SIGINT, signal.SIGTERM)  # the second one is how systems ask a job to end
SILENCE = 30.0  # seconds after which a plain line says what is being done, if nothing else was said


class Progress:
    """Shows every run of a plan. The first Ctrl-C, or the first signal that asks to end, finishes the round and saves;
    the second gives up at once."""

    def __init__(self, screen: Console, runs: list[Planned]):
        self.screen, self.runs, self.stopping = screen, runs, False
        self.code = 130  # of the command, where it was stopped
        self.said: set[str] = set()
        self.playing: dict[str, RunProgress] = {}  # by name
        self.heard = time.monotonic()  # when the last line was printed
        self.over = Event()
        self.asides: dict[str, tuple[float, TaskID | None]] = {}
        self.whole: TaskID | None = None
        self.bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[seen]}", markup=False),
            TimeRemainingColumn(),
            console=screen,
            transient=True,
        )

    def __enter__(self) -> Progress:
        self.before: dict[int, Any] = {}
        with suppress(ValueError):  # not the main thread
            self.before = {number: signal.signal(number, self.interrupted) for number in STOPS}
        if not self.screen.is_terminal:
            Thread(target=self.beats, daemon=True).start()
        else:
            self.bar.start()
            if len(self.runs) > 1:
                rounds = [one.experiment.rounds for one in self.runs]
                done = sum(one.experiment.rounds for one in self.runs if one.done)
                self.whole = self.bar.add_task(f"all {len(rounds)} runs", total=sum(rounds), completed=done, seen="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        if self.screen.is_terminal:
            self.bar.stop()
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def interrupted(self, number: int, frame: FrameType | None) -> None:
        if self.stopping:
            raise KeyboardInterrupt
        self.stopping, self.code = True, 128 + number
        again = "Press Ctrl-C again" if number == signal.SIGINT else "Send it again"
        self.warn(f"Finishing this round, then saving. {again} to stop at once.")

    def warn(self, sentence: str) -> None:
        """Print a sentence once, however many runs say it."""
        if sentence not in self.said:
            self.said.add(sentence)
            self.screen.print(sentence, style="yellow", highlight=False, markup=False, soft_wrap=True)

    def say(self, words: str) -> None:
        self.heard = time.monotonic()
        self.screen.print(words, highlight=False, markup=False, soft_wrap=True)

    def telling(self, what: str, done: int, of: int) -> None:
        """Show how far something after the runs is, if it takes longer than a moment."""
        now = time.monotonic()
        if what not in self.asides:
            bar = self.bar.add_task(what, total=of, seen="") if self.screen.is_terminal else None
            self.asides[what] = (now, bar)
        began, bar = self.asides[what]
        if bar is not None:
            self.bar.update(bar, completed=done, visible=done < of)
        elif done < of and now - began > QUIET_SECONDS:
            self.asides[what] = (now, None)
            self.say(f"{what}: {done}/{of}")

    def watching(self, planned: Planned, number: int, of: int) -> RunProgress:
        """Return a callback that shows one run."""
        self.playing[planned.name] = RunProgress(self, planned, number, of)
        return self.playing[planned.name]

    def doing(self) -> dict[str, str]:
        """Return what the runs that are played are doing within their rounds, by name, where it takes long enough."""
        return {name: str(run.doing) for name, run in list(self.playing.items()) if run.doing is not None}

    def beats(self) -> None:
        """Look every second whether nothing was said for long; for where no bar moves."""
        while not self.over.wait(1.0):
            self.beat(time.monotonic())

    def beat(self, now: float) -> None:
        """Say what is being done if nothing was said for long."""
        if now - self.heard >= SILENCE:
            doing = self.doing()
            for name, run in list(self.playing.items()):
                self.say(f"{run.title}: {doing.get(name, 'preparing' if not run.first else 'at work')}")
            self.heard = now


class RunProgress(Callback):
    """Shows one run. Its bar goes when the run is done, and a line stays."""

    def __init__(self, progress: Progress, planned: Planned, number: int, of: int):
        self.progress, self.name = progress, planned.name
        self.title = planned.name + (f" ({number}/{of})" if of > 1 else "")
        self.bar: TaskID | None = None
        if progress.screen.is_terminal:
            self.bar = progress.bar.add_task(self.title, total=planned.experiment.rounds, seen="")
        self.metric = planned.experiment.metric
        self.scores = ""
        self.doing: Doing | None = None
        self.start = self.shown = self.began = time.monotonic()
        self.clients = self.first = self.before = 0

    def working(self, doing: Doing) -> None:
        self.doing = doing
        if self.bar is not None:
            self.progress.bar.update(self.bar, seen=f"{doing.far} {self.scores}".strip())

    def recorded(self, record: Record) -> bool:
        now, progress = time.monotonic(), self.progress
        self.doing = None
        self.scores = headline(record, self.metric) or self.scores
        if record.dropped:
            lost = f"the models of {len(record.dropped)} clients diverged and count for nothing."
            progress.warn(f"{self.name}, round {record.round}: {lost}")
        speed = self.speed(record, now)
        words = f"{self.scores} {speed:,.{0 if speed >= 10 else 2}f} clients/s".strip()
        if self.bar is not None:
            progress.bar.update(self.bar, completed=record.round, seen=words)
        if progress.whole is not None:
            progress.bar.advance(progress.whole, record.round - self.before)
        self.before = record.round
        left = (now - self.began) / max(1, record.round - self.first) * (record.rounds - record.round)
        said = f"{self.title}: round {record.round}/{record.rounds} {words}"
        if record.round == record.rounds:
            progress.playing.pop(self.name, None)
            if self.bar is not None:
                progress.bar.remove_task(self.bar)
            progress.say(f"{said}, {now - self.start:.1f} s")
        elif self.bar is None and now - self.shown > max(QUIET_SECONDS, LINES * (now - self.start + left)):
            self.shown = now
            progress.say(f"{said}, about {left:.0f} s left")
        return not progress.stopping

    def speed(self, record: Record, now: float) -> float:
        """Return the clients trained a second; what came before the first round is no guide to the others."""
        if self.first:
            self.clients += record.trained
            return self.clients / max(now - self.began, 1e-9)
        self.first, self.began, self.shown = record.round, now, now
        return record.trained / max(now - self.start, 1e-9)


def headline(record: Record, metric: str | None) -> str:
    """Return the scores that a person looks at, labelled; nothing where the round was not scored."""
    name = metric or (default("classify") if record.accuracy else default("regress"))
    shown = [
        f"{kind} {values['micro']:.3f}"
        for kind, values in record.measured(name).items()
        if "/" not in kind and values["micro"] is not None
    ]
    said = "" if name == "accuracy" else f"{METRICS[name].label}, "
    return f"{said}micro " + ", ".join(shown) if shown else ""
