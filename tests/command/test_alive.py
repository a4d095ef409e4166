"""What takes longer than two seconds shows that it lives, on a terminal and in a log."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from rich.console import Console

import fedkin as fk
from fedkin.command import alive as module
from fedkin.command import progress as shown
from fedkin.command.alive import Waiting, alive
from fedkin.command.progress import Progress
from fedkin.comparison.plan import Planned
from fedkin.runs.folder import RunFolder
from fedkin.runs.pulse import Doing


class Screen(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def ticks(waiting: Waiting, now: list[float], until: float) -> None:
    while now[0] < until:
        now[0] += 0.1
        waiting.tick()


def test_a_log_gets_a_line_after_two_seconds_and_then_every_thirty() -> None:
    now, screen = [0.0], Screen(False)
    waiting = Waiting("Loading mnist", screen, lambda: now[0])
    ticks(waiting, now, 1.9)
    assert screen.getvalue() == ""
    ticks(waiting, now, 70)
    assert screen.getvalue().splitlines() == [
        "Loading mnist, 2 s ...",
        "Loading mnist, 32 s ...",
        "Loading mnist, 62 s ...",
    ]


def test_a_terminal_gets_a_moving_line_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    now, screen = [0.0], Screen(True)
    monkeypatch.setattr(sys, "stderr", screen)
    waiting = Waiting("Loading mnist", screen, lambda: now[0])
    ticks(waiting, now, 0.9)
    assert screen.getvalue() == ""
    ticks(waiting, now, 2.8)
    lines = screen.getvalue().split("\r")
    assert "\n" not in screen.getvalue()
    assert len(set(lines)) > 10, "it moves"
    assert "Loading mnist, 3 s" in lines[-1]
    waiting.clear()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_another_display_on_the_terminal_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding has a bar of its own, and while rich shows a bar it stands in for standard error."""
    now, screen = [0.0], Screen(True)
    monkeypatch.setattr(sys, "stderr", screen)
    waiting = Waiting("Loading", screen, lambda: now[0])
    ticks(waiting, now, 2.0)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    ticks(waiting, now, 2.2)
    drawn = screen.getvalue()
    assert drawn.endswith("\r\x1b[K")
    ticks(waiting, now, 9.0)
    assert screen.getvalue() == drawn


def test_alive_shows_what_takes_long_and_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, told = Screen(False), Event()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(module, "SILENCE", 0.0)
    monkeypatch.setattr(Waiting, "tick", lambda self, tick=Waiting.tick: (tick(self), told.set())[0])
    with alive("Thinking"):
        assert told.wait(10)
    assert screen.getvalue() == "Thinking, 0 s ...\n"


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    experiment = fk.Experiment(fk.methods.fedavg(), fk.Data("digits"), rounds=10)
    return Planned(experiment, RunFolder(tmp_path))


def record(round: int) -> fk.Record:
    return fk.Record(method="fedavg", seed=0, round=round, rounds=10, trained=5, line={})


def test_a_silent_round_says_every_thirty_seconds_how_far_it_is(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(shown.time, "monotonic", lambda: now[0])
    screen = Screen(False)
    progress = Progress(Console(file=screen, width=200), [planned])
    run = progress.watching(planned, 1, 1)

    def beats(seconds: int) -> list[str]:
        screen.seek(0)
        screen.truncate()
        for _ in range(seconds):
            now[0] += 1.0
            progress.beat(now[0])
        return screen.getvalue().splitlines()

    assert beats(29) == []
    assert beats(1) == ["fedavg seed 0: preparing"]
    run.working(Doing(1, 10, "training clients", 140, 500))
    assert beats(60) == ["fedavg seed 0: round 1 of 10: training clients, 140 of 500 (28 %)"] * 2
    run.recorded(record(1))
    assert progress.doing() == {}
    assert beats(30) == ["fedavg seed 0: at work"]
    run.recorded(record(10))
    assert beats(90) == [], "a run that is over is silent"


def test_a_bar_moves_within_a_round(planned: Planned) -> None:
    screen = Console(file=Screen(True), force_terminal=True, width=120)
    with Progress(screen, [planned]) as progress:
        run = progress.watching(planned, 1, 1)
        run.working(Doing(1, 10, "training clients", 140, 500))
        task: Any = progress.bar.tasks[0]
        assert task.fields["seen"] == "training clients, 140 of 500 (28 %)"
        assert progress.doing() == {"fedavg seed 0": "round 1 of 10: training clients, 140 of 500 (28 %)"}
