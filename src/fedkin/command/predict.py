"""fedkin predict: what a run's models say of the rows of a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fedkin.command.app import app
from fedkin.command.export import Folder, MethodName, Seed, say
from fedkin.errors import require


@app.command()
def predict(
    folder: Folder,
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="Rows to predict; .npz or .pt with x for arrays.")],
    client: Annotated[str | None, typer.Option(help="Whose model judges all rows. [that of each row's site]")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV file to write. [standard output]")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Write the columns of the table too.")] = False,
    method: MethodName = None,
    seed: Seed = None,
) -> None:
    """Predict the rows of a table: the class with the probability of each, or the value.

    Without --client each row gets the model of its own site, if the table has the column of sites; rows of a site that
    was not in the run get the common model.

    fedkin predict runs/compare-patients-1 new-patients.csv --client "Hospital 7" -o predictions.csv
    """
    import pandas as pd

    from fedkin.deploy import choose
    from fedkin.deploy.prediction import predict as predicted
    from fedkin.deploy.reading import read_rows
    from fedkin.runs import files

    require(table.is_file(), f"There is no file {table}.")
    chosen = choose(folder, client, method, seed, kinds=("judged",))
    say(chosen.said)
    rows = read_rows(chosen.run, table)
    found = predicted(chosen.run, rows, client, warn=say)
    if keep and isinstance(rows, pd.DataFrame):
        found = pd.concat([rows, found], axis=1)
    found.insert(0, "row", range(1, len(found) + 1), allow_duplicates=True)
    text = found.to_csv(index=False)
    if out is None:
        sys.stdout.write(text)
    else:
        files.write(out, text.encode())
        say(f"{len(found):,} predictions are in {out}")
