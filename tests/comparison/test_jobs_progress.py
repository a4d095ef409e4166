"""How far a round is in another process is heard in the command."""

from __future__ import annotations

from collections import deque
from multiprocessing import Pipe
from typing import Any

import fedkin as fk
from fedkin.comparison.jobs import Crew, Sender, Worker
from fedkin.comparison.sequence import nobody
from fedkin.runs.pulse import Doing


class Ear(fk.Callback):
    def __init__(self) -> None:
        self.heard: list[Doing] = []

    def working(self, doing: Doing) -> None:
        self.heard.append(doing)


def test_a_process_sends_how_far_it_is() -> None:
    here, there = Pipe()
    doing, ear = Doing(3, 10, "training clients", 140.5, 500), Ear()
    unused: Any = None
    Sender(there).working(doing)
    Crew(deque(), 1, 1, False, nobody, print).hear(Worker(unused, here, unused, ear))
    assert ear.heard == [doing]
    assert not there.poll(), "nothing goes back: anything would stop the run"
