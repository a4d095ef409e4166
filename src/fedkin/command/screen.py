"""The screen of a command: what it prints are names and numbers, and brackets in them are no markup."""

from __future__ import annotations

import sys
from contextlib import suppress

from rich.console import Console


def plain_console(stderr: bool = False, width: int | None = None) -> Console:
    """Return a console that shows every text as it is."""
    return Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)


def prepare_streams() -> None:
    """Let letters that a terminal does not have be shown by their numbers."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
