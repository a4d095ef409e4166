"""fedkin report: the page of a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fedkin.command.alive import alive
from fedkin.command.app import Verify, app
from fedkin.command.screen import plain_console
from fedkin.comparison.exports import checked_path
from fedkin.comparison.result import Comparison, load_comparison
from fedkin.errors import require
from fedkin.runs import manifest, wholeness
from fedkin.runs.command_folder import CommandFolder


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


def table_paths(texts: list[str] | None) -> list[Path]:
    """Return the files that tables are to be written to; each text is one or several with commas between them."""
    return [checked_path(name.strip()) for text in texts or () for name in text.split(",") if name.strip()]


def write_tables(found: Comparison, wanted: Sequence[Sequence[Path]], screen: Console) -> None:
    """Write the tables of a comparison, and say where they are: files for methods, for clients and for pairs."""
    writers = (found.export, found.export_clients, found.export_pairs)
    for path in [write(path) for write, paths in zip(writers, wanted, strict=True) for path in paths]:
        screen.print(f"Table: {path}", highlight=False, markup=False, soft_wrap=True)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run or a comparison.")],
    export: Annotated[list[str] | None, typer.Option(help="Write the table to this file: .csv, .tex or .md.")] = None,
    export_clients: Annotated[
        list[str] | None, typer.Option(help="Write every client's gains to this file: .csv, .tex or .md.")
    ] = None,
    export_pairs: Annotated[
        list[str] | None, typer.Option(help="Write each method against each other one to this file: .csv, .tex or .md.")
    ] = None,
    verify: Verify = True,
) -> None:
    """Write a page with the table, the curves and every client's gain over training alone; and tables as files.

    fedkin report runs/compare-digits-1 --export table.tex --export-clients clients.csv
    """
    wanted = [table_paths(texts) for texts in (export, export_clients, export_pairs)]
    if any(wanted):
        write_tables(load_comparison(folder), wanted, plain_console(stderr=True))
    begun = CommandFolder(folder).runs()
    require(begun, f"{folder} is not a run of fedkin; give the folder that 'fedkin run' named.")
    page = write_report(folder, plain_console(stderr=True))
    if page is None:
        raise typer.Exit(2)
    print(page)


@app.command("check")
def check_folder(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run or a comparison.")],
) -> None:
    """Say which files of a run are whole, and which are damaged or missing.

    fedkin check runs/compare-digits-1
    """
    place = CommandFolder(folder)
    begun = place.runs() or place.runs_of_method()
    require(begun, f"{folder} is not a run of fedkin; give the folder that 'fedkin run' named.")
    manifest.verify(True)
    bad = 0
    found = [(run.path, *wholeness.of_run(run), "" if run.summarised else "not finished; ") for run in begun]
    if folder not in [path for path, *_ in found]:
        found.insert(0, (folder, *wholeness.of_command(place), ""))
    for path, known, damaged, said in found:
        bad += len(damaged)
        for name in damaged:
            print(f"{path / name}: damaged or missing")
        if known:
            print(f"{path}: {said}{known - len(damaged)} of {known} files are whole")
    raise typer.Exit(1 if bad else 0)
