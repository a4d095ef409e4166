"""fedkin methods and fedkin data: what there is to choose from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fedkin.command.alive import alive
from fedkin.command.app import app, data_app
from fedkin.command.columns import print_columns
from fedkin.command.lists import list_datasets, list_methods
from fedkin.command.options import DataOptions, option, shared
from fedkin.data import Data


@app.command()
def methods() -> None:
    """List the methods and what they are made of."""
    list_methods()


@data_app.command("list")
def data_list() -> None:
    """List the datasets, and whether they are at hand."""
    list_datasets()


@data_app.command("show")
@shared(DataOptions)
def data_show(
    name: Annotated[str, typer.Argument(metavar="DATA", help="A dataset or a path to own data.")] = "synthetic",
    out: Annotated[Path | None, option("File of the picture, .svg or .html. [named after the data]")] = None,
    *,
    options: DataOptions,
) -> None:
    """Print how many samples of each class every client has, and draw it; of a table also what its columns become.

    fedkin data show mnist --partition dirichlet:0.5 --clients 20
    """
    from fedkin.data import load, picture
    from fedkin.data.division import table
    from fedkin.data.prepare import TOLD

    with alive(f"Loading {name}"):
        federation = load(Data(name=name, **options.of_data()))
    print_columns(federation, Console())
    said = [note for note in federation.notes if not note.startswith(TOLD)]  # the table of columns has said it
    for line in [*said, *table(federation)]:
        print(line)
    word = "-".join(w for w in (Path(name).stem if "/" in name else name, options.partition, options.irrelevant) if w)
    path = out or Path("".join(c if c.isalnum() or c in ".-" else "-" for c in word) + ".svg")
    with alive("Drawing the picture"):
        picture.draw(federation, path)
    print(f"Picture: {path}")
