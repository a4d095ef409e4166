"""What a user sees while a run goes on: a bar on a terminal, plain lines elsewhere; and Ctrl-C that loses nothing."""

from __future__ import annotations

import signal
import time
from types import FrameType, TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from fedkin.compare import Arm
from fedkin.play import Listener, Tick

QUIET_SECONDS = 5.0  # between two plain lines


class Progress:
    """Shows every arm of a plan. The first Ctrl-C finishes the round and saves; the second gives up at once."""

    def __init__(self, screen: Console, plan: list[Arm]):
        self.screen, self.plan, self.stopping = screen, plan, False
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[seen]}"),
            TimeRemainingColumn(),
            console=screen,
            transient=False,
        )

    def __enter__(self) -> Progress:
        try:
            self.before: Any = signal.signal(signal.SIGINT, self.interrupted)
        except ValueError:  # not the main thread
            self.before = None
        if self.screen.is_terminal:
            self.bar.start()
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
        self.screen.print(sentence, style="yellow", highlight=False, markup=False, soft_wrap=True)

    def listener(self, arm: Arm, number: int, of: int) -> Listener:
        """An ear for one arm's rounds."""
        title = f"{arm.experiment.method.name} seed {arm.experiment.seed} ({number}/{of})"
        task = None
        if self.screen.is_terminal:
            task = self.bar.add_task(title, total=arm.experiment.rounds, seen="")
        accuracy = ""
        start = shown = time.monotonic()
        clients = first = 0

        def heard(tick: Tick) -> bool:
            nonlocal accuracy, shown, clients, first
            clients += tick.trained
            first = first or tick.round
            if tick.accuracy:
                accuracy = headline(tick.accuracy)
            if tick.dropped:
                self.warn(f"Round {tick.round}: {len(tick.dropped)} uploads were not finite and count for nothing.")
            now = time.monotonic()
            speed = clients / max(now - start, 1e-9)
            last = tick.round == tick.rounds
            if task is not None:
                words = f"{accuracy} {speed:,.0f} clients/s"
                self.bar.update(task, completed=tick.round, seen=words, refresh=last)
            elif last or now - shown > QUIET_SECONDS:
                shown = now
                left = (now - start) / (tick.round - first + 1) * (tick.rounds - tick.round)
                words = f"{title}: round {tick.round}/{tick.rounds} {accuracy} {speed:,.0f} clients/s"
                self.screen.print(
                    words + ("" if last else f", about {left:.0f} s left"), highlight=False, soft_wrap=True
                )
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
