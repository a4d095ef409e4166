"""fedkin report: the page of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fedkin.command.alive import alive
from fedkin.command.app import app
from fedkin.errors import require
from fedkin.runs.folder import CommandFolder


def write_report(folder: Path, screen: Console) -> Path | None:
    """Write the page of a folder; returns its path, or None where the extra for reports is not installed."""
    try:
        from fedkin.report.page import write
    except ModuleNotFoundError:
        hint = f"For a report with pictures: pip install 'fedkin[report]', then: fedkin report {folder}"
        screen.print(hint, markup=False, highlight=False, soft_wrap=True)
        return None
    with alive("Writing the report"):
        return write(folder)


@app.command()
def report(folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run or a comparison.")]) -> None:
    """Write a page with the table, the curves and every client's gain over training alone."""
    begun = CommandFolder(folder).runs()
    require(begun, f"{folder} is not a run of fedkin; give the folder that 'fedkin run' named.")
    page = write_report(folder, Console(stderr=True))
    if page is None:
        raise typer.Exit(2)
    print(page)
