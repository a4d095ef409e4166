"""fedkin join: what a site that was not there would gain."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fedkin.command.app import app
from fedkin.command.export import Folder, MethodName, Seed, say
from fedkin.metrics import METRICS


@app.command()
def join(
    folder: Folder,
    table: Annotated[Path, typer.Argument(metavar="NEW-SITE", help="The new site's rows, with the target.")],
    test: Annotated[float, typer.Option(help="Share of its rows held out for testing.")] = 0.25,
    splits: Annotated[int, typer.Option(help="How often its rows are divided into train and test.")] = 10,
    name: Annotated[str | None, typer.Option(help="The site's name. [its column of sites, or the file's name]")] = None,
    method: MethodName = None,
    seed: Seed = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")] = False,
) -> None:
    """Say what a site that was not there would gain by joining, without running the federation again: by the common
    model as it is, fine-tuned, and by the models of the clients that are its kin, against training alone.

    fedkin join runs/compare-patients-1 hospital-13.csv
    """
    from fedkin.deploy import choose
    from fedkin.deploy.joining import join as joined
    from fedkin.deploy.reading import read_site

    chosen = choose(folder, None, method, seed, any_model=True)
    say(chosen.said)
    found = joined(chosen.run, read_site(chosen.run, table, name), test=test, splits=splits, said=say)
    if as_json:
        sys.stdout.write(json.dumps(found.to_json(), indent=2) + "\n")
        return
    metric = METRICS[found.metric]
    times, digits = (100, 1) if metric.percent else (1, 3)
    shown = Table(
        "by", f"{metric.label}{' %' if metric.percent else ''}", "gain", "95 % interval", box=None, pad_edge=False
    )
    for option, score in found.scores.items():
        cells = ["", ""]
        if option in found.gains:
            gain = found.gains[option]
            low, high = (f"{times * end:+.{digits}f}" for end in (gain.low, gain.high))
            cells = [f"{times * gain.gain:+.{digits}f}", f"{low} to {high}"]
        shown.add_row(option, f"{times * score:.{digits}f}", *cells)
    Console(width=max(100, Console().width)).print(shown)
    print(found.verdict)
