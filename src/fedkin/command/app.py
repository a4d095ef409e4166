"""The command itself: commands are entered here, each by the module that has it."""

from __future__ import annotations

from typing import Annotated

import typer

from fedkin import imports
from fedkin.runs import manifest
from fedkin.runs.facts import versions

app = typer.Typer(
    name="fedkin",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    suggest_commands=False,  # click does it by itself, and would do it again
)
data_app = typer.Typer(help="Look at datasets and how they are divided among clients.", no_args_is_help=True)
app.add_typer(data_app, name="data")
federation_app = typer.Typer(help="Learn together on real machines, with Flower.", no_args_is_help=True)
app.add_typer(federation_app, name="federation")


def say_version(asked: bool) -> None:
    """Print the version and end, if that is asked for."""
    if asked:
        print(f"fedkin {versions()['fedkin']}")
        raise typer.Exit


def say_trust(asked: bool) -> None:
    """Let modules be imported that folders name, if that is asked for."""
    imports.TRUSTED.discard(imports.EVERYTHING)
    if asked:
        imports.trust()


def say_verify(asked: bool) -> bool:
    """Let files be checked, or not."""
    manifest.verify(asked)
    return asked


Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Import modules that RUN names: it runs the code of whoever wrote it.", callback=say_trust
    ),
]


Verify = Annotated[
    bool,
    typer.Option("--verify/--no-verify", help="Check that files are what was written. [check]", callback=say_verify),
]


@app.callback()
def options_of_all(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", callback=say_version, is_eager=True)
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of a failure too; it may stand at any place.")
    ] = False,
) -> None:
    """Personalised federated learning in which each client learns from its kin.

    Try: fedkin compare fedavg fedprox --data synthetic --rounds 200
    """
