"""The command itself: commands are entered here, each by the module that has it."""

from __future__ import annotations

import typer

app = typer.Typer(
    name="fedkin",
    help="Personalised federated learning in which each client learns from its kin.\n\n"
    "Try: fedkin compare fedavg fedprox --data synthetic --rounds 200",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Look at datasets and how they are divided among clients.", no_args_is_help=True)
app.add_typer(data_app, name="data")


class Unfinished(Exception):
    """Something stopped the command that is no mistake of the user's; the sentence says how to go on."""
