"""What a user sees while arms are played: bars on a terminal, plain lines elsewhere; and Ctrl-C that loses nothing."""

from __future__ import annotations

import signal
import time
from types import FrameType, TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from fedkin.compare import Arm
from fedkin.play import Listener, Tick

QUIET_SECONDS = 5.0  # between two plain lines of an arm, at least ...
LINES = 0.05  # ... and this part of its time


class Progress:
    """Shows every arm of a plan. The first Ctrl-C finishes the round and saves; the second gives up at once."""

    def __init__(self, screen: Console, plan: list[Arm]):
        self.screen, self.plan, self.stopping = screen, plan, False
        self.said: set[str] = set()
        self.whole: TaskID | None = None
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[seen]}"),
            TimeRemainingColumn(),
            console=screen,
            transient=True,
        )

    def __enter__(self) -> Progress:
        try:
            self.before: Any = signal.signal(signal.SIGINT, self.interrupted)
        except ValueError:  # not the main thread
            self.before = None
        if self.screen.is_terminal:
            self.bar.start()
            if len(self.plan) > 1:
                rounds = [arm.experiment.rounds for arm in self.plan]
                done = sum(arm.experiment.rounds for arm in self.plan if arm.done)
                self.whole = self.bar.add_task(f"all {len(rounds)} runs", total=sum(rounds), completed=done, seen="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.screen.is_terminal:
            self.bar.stop()
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)

    def interrupted(self, number: int, frame: FrameType | None) -> None:
        if self.stopping:
            raise KeyboardInterrupt
        self.stopping = True
        self.warn("Finishing this round, then saving. Press Ctrl-C again to stop at once.")

    def warn(self, sentence: str) -> None:
        """Every sentence once, however many arms say it."""
        if sentence not in self.said:
            self.said.add(sentence)
            self.screen.print(sentence, style="yellow", highlight=False, markup=False, soft_wrap=True)

    def say(self, words: str) -> None:
        self.screen.print(words, highlight=False, markup=False, soft_wrap=True)

    def listener(self, arm: Arm, number: int, of: int) -> Listener:
        """An ear for one arm's rounds. Its bar goes when it is done, and a line stays."""
        title = arm.name + (f" ({number}/{of})" if of > 1 else "")
        task = None
        if self.screen.is_terminal:
            task = self.bar.add_task(title, total=arm.experiment.rounds, seen="")
        accuracy = ""
        start = shown = began = time.monotonic()
        clients = first = before = 0

        def heard(tick: Tick) -> bool:
            nonlocal accuracy, shown, began, clients, first, before
            now = time.monotonic()
            if tick.accuracy:
                accuracy = headline(tick.accuracy)
            if tick.dropped:
                lost = f"{len(tick.dropped)} uploads were not finite and count for nothing."
                self.warn(f"{arm.name}, round {tick.round}: {lost}")
            if first:
                clients += tick.trained
                speed = clients / max(now - began, 1e-9)
            else:  # what came before the first round is no guide to the others
                speed = tick.trained / max(now - start, 1e-9)
                first, began, shown = tick.round, now, now
            last = tick.round == tick.rounds
            words = f"{accuracy} {speed:,.0f} clients/s"
            if task is not None:
                self.bar.update(task, completed=tick.round, seen=words)
            if self.whole is not None:
                self.bar.advance(self.whole, tick.round - before)
            before = tick.round
            left = (now - began) / max(1, tick.round - first) * (tick.rounds - tick.round)
            if last:
                if task is not None:
                    self.bar.remove_task(task)
                self.say(f"{title}: round {tick.round}/{tick.rounds} {words}, {now - start:.1f} s")
            elif task is None and now - shown > max(QUIET_SECONDS, LINES * (now - start + left)):
                shown = now
                self.say(f"{title}: round {tick.round}/{tick.rounds} {words}, about {left:.0f} s left")
            return not self.stopping

        return heard


def headline(accuracy: dict[str, dict[str, float | None]]) -> str:
    """The accuracies a person looks at, labelled."""
    shown = [
        f"{kind} {values['micro']:.3f}"
        for kind, values in accuracy.items()
        if "/" not in kind and values["micro"] is not None
    ]
    return "micro " + ", ".join(shown) if shown else ""
