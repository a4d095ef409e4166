"""fedkin export: a client's model for a service that does not have fedkin."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkin.command.app import Trust, app
from fedkin.command.screen import plain_console

Folder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, of a method, or of a comparison.")]
Client = Annotated[str | None, typer.Option(help="Whose model, by name. [the common model]")]
MethodName = Annotated[
    str | None, typer.Option(help="Which method of a comparison. [the best one for the client, which is said]")
]
Seed = Annotated[int | None, typer.Option(help="Which seed, where there are several. [the first]")]


def say(sentence: str) -> None:
    """Print a sentence for the user on standard error, so that it is not mixed with what is printed or written."""
    if sentence:
        plain_console(stderr=True).print(sentence, markup=False, highlight=False, soft_wrap=True)


@app.command()
def export(
    folder: Folder,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write; an earlier export there is replaced.")],
    client: Client = None,
    method: MethodName = None,
    seed: Seed = None,
    trust: Trust = False,
) -> None:
    """Write a client's model, with all that a service needs to use it without fedkin: the network (torch.export and
    safetensors), how a row becomes a sample, names of columns and classes, a model card, and a predict.py that runs
    with torch and pandas only.

    fedkin export runs/compare-patients-1 --client "Hospital 7" -o model/
    """
    from fedkin.deploy import choose
    from fedkin.deploy.package import export as write

    chosen = choose(folder, client, method, seed)
    path = write(chosen.run, out, client)
    say(chosen.said)
    file = "rows.csv" if chosen.run.preparation is not None else "x.npz"
    say(f"Try: python {path / 'predict.py'} {file}")
    print(path)
