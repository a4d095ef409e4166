"""The screen of a command: what it prints are names and numbers, and brackets in them are no markup."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from fedkin.errors import visible


def plain_console(stderr: bool = False, width: int | None = None) -> Console:
    """Return a console that shows every text as it is, and what cannot be seen by its number."""
    console = Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)
    console.push_render_hook(Visible())
    return console


class Visible(RenderHook):
    """Lets nothing through to a terminal that would change how it shows the rest: names may come from anybody."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [Shown(one) for one in renderables]


@dataclass(frozen=True)
class Shown:
    """Something on the screen, of which all is visible."""

    inner: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self.inner, options):
            yield Segment(text if control else visible(text, also="\n"), style, control)


def prepare_streams() -> None:
    """Let letters that a terminal does not have be shown by their numbers."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
