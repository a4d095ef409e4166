"""fedkin methods and fedkin data: what there is to choose from."""

from __future__ import annotations

from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated

import typer

from fedkin.command.alive import alive
from fedkin.command.app import app, data_app
from fedkin.command.columns import print_columns
from fedkin.command.explanations import explain_method, explain_part
from fedkin.command.lists import list_datasets, list_methods
from fedkin.command.options import DataOptions, option, shared
from fedkin.command.screen import plain_console
from fedkin.comparison.arms import read_arms
from fedkin.data import Data
from fedkin.errors import require
from fedkin.parts import Method, Part

PARTS = {label: kind for label, kind in Part.known.items() if kind is not Method and is_dataclass(kind)}

Named = Annotated[
    str | None, typer.Argument(metavar="[METHOD|PART]", help="A method, also as 'compare' takes it, or a part, as SGD.")
]


@app.command()
def methods(name: Named = None) -> None:
    """List the methods with all their defaults, or explain one: what it does, its parts, each field, its paper.

    fedkin methods fedmcsa     explains a method, also one as 'compare' takes it

    fedkin methods SGD         explains a part
    """
    if name is None:
        list_methods()
    elif name in PARTS:
        explain_part(PARTS[name])
    else:
        several = read_arms([name])
        require(len(several) == 1, f"'{name}' is several methods; ask for one of them.")
        explain_method(several[0], name)


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
    print_columns(federation, plain_console())
    said = [note for note in federation.notes if not note.startswith(TOLD)]  # the table of columns has said it
    for line in [*said, *table(federation)]:
        print(line)
    word = "-".join(w for w in (Path(name).stem if "/" in name else name, options.partition, options.irrelevant) if w)
    path = out or Path("".join(c if c.isalnum() or c in ".-" else "-" for c in word) + ".svg")
    with alive("Drawing the picture"):
        picture.draw(federation, path)
    print(f"Picture: {path}")
