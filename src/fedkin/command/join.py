"""fedkin join: what a site that was not there would gain."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from fedkin.command.app import Trust, app
from fedkin.command.export import Folder, MethodName, Seed, say
from fedkin.command.screen import plain_console
from fedkin.deploy.joining import Joined
from fedkin.errors import require
from fedkin.metrics import METRICS
from fedkin.runs.callback import Callback, Record


@app.command()
def join(
    folder: Folder,
    table: Annotated[Path, typer.Argument(metavar="NEW-SITE", help="The new site's rows, with the target.")],
    test: Annotated[float, typer.Option(help="Share of its rows held out for testing.")] = 0.25,
    splits: Annotated[int, typer.Option(help="How often its rows are divided into train and test.")] = 10,
    name: Annotated[str | None, typer.Option(help="The site's name. [its column of sites, or the file's name]")] = None,
    method: MethodName = None,
    seed: Seed = None,
    trust: Trust = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")] = False,
) -> None:
    """Say what a site that was not there would gain by joining, without running the federation again: by the common
    model as it is, fine-tuned, and by the models of the clients that are its kin, against training alone.

    fedkin join runs/compare-patients-1 hospital-13.csv
    """
    from fedkin.deploy import choose
    from fedkin.deploy.joining import join as joined
    from fedkin.deploy.reading import read_site

    require(table.is_file(), f"There is no file {table}.")
    chosen = choose(folder, None, method, seed, kinds=("global", "judged"))
    rows, called = read_site(chosen.run, table, name)
    with Rounds() as shown:
        found = joined(chosen.run, rows, called, test=test, splits=splits, callbacks=[shown])
    say(chosen.said)
    if as_json:
        sys.stdout.write(json.dumps(found.as_json(), indent=2) + "\n")
        return
    plain_console(width=max(100, plain_console().width)).print(table_of(found))
    print(found.sentence)


def table_of(found: Joined) -> Table:
    """Return a row for each option: its score, and its gain over training alone."""
    metric = METRICS[found.metric]
    times, digits = (100, 1) if metric.percent else (1, 3)
    shown = Table("by", box=None, pad_edge=False)
    for head in (f"{metric.label}{' %' if metric.percent else ''}", "gain", "95 % interval"):
        shown.add_column(head, justify="right")
    for option, score in found.scores.items():
        cells = ["", ""]
        if option in found.gains:
            gain = found.gains[option]
            low, high = (f"{times * end:+.{digits}f}" for end in (gain.low, gain.high))
            cells = [f"{times * gain.gain:+.{digits}f}", f"{low} to {high}"]
        shown.add_row(option, f"{times * score:.{digits}f}", *cells)
    return shown


class Rounds(Callback):
    """A bar of the rounds in which the new site trains alone, on standard error."""

    def __init__(self) -> None:
        self.bar = Progress(console=plain_console(stderr=True), transient=True)
        self.task = self.bar.add_task("The new site trains alone")

    def __enter__(self) -> Rounds:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def recorded(self, record: Record) -> None:
        done = record.round == record.rounds
        now = "The stored models are tried" if done else "The new site trains alone"
        self.bar.update(self.task, completed=record.round, total=record.rounds, description=now)
