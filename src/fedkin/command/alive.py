"""Shows that a command lives while it does something that says nothing itself."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TextIO

PATIENCE = 1.0  # seconds after which a terminal shows a moving line ...
SILENCE = 2.0  # ... and a log its first one; ...
AGAIN = 30.0  # ... and so many seconds later the next
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
GLANCE = 0.1  # seconds between two pictures of the moving line


class Waiting:
    """One thing that takes its time: a moving line on a terminal, which goes when it is done; plain lines elsewhere."""

    def __init__(self, what: str, stream: TextIO, clock: Callable[[], float] = time.monotonic):
        self.what, self.stream, self.clock = what, stream, clock
        self.moves = stream.isatty()
        self.began = clock()
        self.next = self.began + (PATIENCE if self.moves else SILENCE)
        self.drawn = False

    def tick(self) -> None:
        """Show what is to be shown now."""
        now = self.clock()
        if now < self.next:
            return
        if not self.moves:
            self.next = now + AGAIN
            self.stream.write(f"{self.what}, {now - self.began:.0f} s ...\n")
        elif self.alone():
            spent = now - self.began
            self.stream.write(f"\r{FRAMES[int(spent / GLANCE) % len(FRAMES)]} {self.what}, {spent:.0f} s\x1b[K")
            self.drawn = True
        self.stream.flush()

    def alone(self) -> bool:
        """Whether no other display has taken the terminal over, as a bar of rich does; that one shows life itself."""
        if self.stream is sys.stderr:
            return True
        self.clear()
        return False

    def clear(self) -> None:
        """Take the moving line away."""
        if self.drawn:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
            self.drawn = False


@contextmanager
def alive(what: str) -> Iterator[None]:
    """Show on standard error that this is being done, while the block runs, if it takes longer than a moment."""
    waiting, over = Waiting(what, sys.stderr), Event()

    def tick() -> None:
        while not over.wait(GLANCE):
            waiting.tick()

    thread = Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        waiting.clear()
