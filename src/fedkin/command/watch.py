"""fedkin watch: a local page that shows a run while it is played. `--watch` of run and compare shows it too."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fedkin.command.app import app
from fedkin.command.screen import plain_console
from fedkin.errors import BadInput

if TYPE_CHECKING:
    from fedkin.watch.server import Server

BESIDE = 0.03  # the share of its time that a run may lose to the page beside it


@app.command()
def watch(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run or a comparison.")],
    port: Annotated[
        int | None, typer.Option(help="Port of the page on this machine. [the first free from 8422]")
    ] = None,
    open: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser. [no]")] = False,
) -> None:
    """Show a run or a comparison on a local page while it is played; Ctrl-C ends it.

    The page has the sections of the report and follows the run by itself. It can be seen on this machine only, and
    changes nothing in the folder. The folder may be that of a run which has not begun yet, or has ended long ago.

    fedkin watch runs/compare-mnist-1
    """
    screen = plain_console(stderr=True)
    with served(folder, port) as server:
        say_where(server, folder, screen)
        if open:
            typer.launch(server.address)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            screen.print("No longer watching; the run itself goes on, if it was running.", highlight=False)


@contextmanager
def served(folder: Path, port: int | None = None, share: float = 0.3, beside: bool = False) -> Iterator[Server]:
    """Serve the page of a folder while the block runs."""
    try:
        from fedkin.watch.server import Server, check_port
        from fedkin.watch.view import Watched, check_watchable
    except ModuleNotFoundError:
        raise BadInput("The page needs plotly: pip install 'fedkin[report]'.") from None
    check_port(port)
    check_watchable(folder)
    with Server(Watched(folder, share, beside), port) as server:
        yield server


def say_where(server: Server, folder: Path, screen: Console) -> None:
    waiting = "" if folder.exists() else ", which is not there yet"
    sentence = f"Watch {folder}{waiting}: {server.address} (this machine only; Ctrl-C ends it)"
    screen.print(sentence, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def beside(
    wanted: bool, folder: Path, doing: Callable[[], dict[str, str]], screen: Console
) -> Iterator[Callable[[str], None]]:
    """Serve the page while a run is played in this process. The block gets a function to call when the run has ended.

    That function takes a last sentence for the page, and waits until a page that is open has shown the end.
    """
    if not wanted:
        yield lambda note: None
        return
    with served(folder, share=BESIDE, beside=True) as server:
        server.watched.doing = doing
        screen.print(f"Watch it: {server.address} (this machine only)", highlight=False, markup=False)
        yield server.finish
