"""The progress bar that is shown while a dataset is decoded for the first time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Advance(Protocol):
    """A function that is called with the number of rows decoded since the last call."""

    def __call__(self, rows: int, /) -> None: ...


@contextmanager
def decode_progress(name: str, rows: int, show: bool) -> Iterator[Advance]:
    """Show a bar on a terminal, and one line on any other stderr, so that a log explains the waiting time."""
    if show and sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(f"Decoding {name}, once", total=rows)
            yield lambda done: bar.advance(task, done)
        return
    if show:
        print(f"Decoding {name}, {rows:,} rows, once ...", file=sys.stderr)
    yield lambda done: None
