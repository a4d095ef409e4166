"""fedkin predict: what a run's models say of the rows of a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fedkin.command.app import Trust, app
from fedkin.command.export import Folder, MethodName, Seed, say
from fedkin.errors import BadInput, require


@app.command()
def predict(
    folder: Folder,
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="Rows to predict; .npz or .pt with x for arrays.")],
    client: Annotated[str | None, typer.Option(help="Whose model judges all rows. [that of each row's site]")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV file to write. [standard output]")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Write the columns of the table too.")] = False,
    method: MethodName = None,
    seed: Seed = None,
    trust: Trust = False,
) -> None:
    """Predict the rows of a table: the class with the probability of each, or the value.

    Without --client each row gets the model of its own site, if the table has the column of sites; rows of a site that
    was not in the run get the common model. Of a comparison it is the method that it recommends to the site.

    fedkin predict runs/compare-patients-1 new-patients.csv --client "Hospital 7" -o predictions.csv
    """
    import pandas as pd

    from fedkin.deploy import Chooser
    from fedkin.deploy.by_site import predict_by_site
    from fedkin.deploy.prediction import predict as predicted
    from fedkin.deploy.reading import read_rows
    from fedkin.runs import files

    require(table.is_file(), f"There is no file {table}.")
    chooser, said = Chooser(folder), list[str]()
    if client is None and method is None and len(chooser.names) > 1:
        rows = read_rows(chooser.runs[0], table)
        found = predict_by_site(chooser, rows, seed, said.append)
    else:
        chosen = chooser.choose(client, method, seed, kinds=("judged",))
        said.append(chosen.said)
        rows = read_rows(chosen.run, table)
        found = predicted(chosen.run, rows, client, warn=said.append)
    if keep and isinstance(rows, pd.DataFrame):
        found = pd.concat([rows, found], axis=1)
    found.insert(0, "row", range(1, len(found) + 1), allow_duplicates=True)
    text = found.to_csv(index=False)
    if out is not None:
        try:
            files.write(out, text.encode())
        except OSError as error:
            raise BadInput(f"{out} cannot be written: {error.strerror}; choose another -o.") from error
        said.append(f"{len(found):,} predictions are in {out}")
    for sentence in said:
        say(sentence)
    if out is None:
        sys.stdout.write(text)
