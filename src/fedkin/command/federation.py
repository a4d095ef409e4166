"""fedkin federation: the folder of a federation, its server and its sites."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fedkin.command.app import federation_app
from fedkin.command.export import say
from fedkin.errors import require
from fedkin.metrics import METRICS

if TYPE_CHECKING:
    from fedkin.federation.state import State

ADDRESS = "127.0.0.1:9443"
METHODS, ROUNDS, SETTINGS = "local fedavg fedacs@p=0.5", 6, "eta=0.1 train.steps=20"  # of the demo
Federation = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder that 'federation init' made.")]


@federation_app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to write; it must not be there.")],
    sites: Annotated[str, typer.Option(help="Names of the sites, as berlin,paris,rome.")] = "",
    method: Annotated[str, typer.Option(help="What is played; several with spaces between them.")] = "fedmcsa",
    rounds: Annotated[int, typer.Option(help="Rounds of a run.")] = 20,
    model: Annotated[str, typer.Option(help="The network, by its name.")] = "mlr",
    address: Annotated[str, typer.Option(help="HOST:PORT at which sites reach the server.")] = ADDRESS,
    target_column: Annotated[str, typer.Option(help="The column that is to be predicted, where all name it so.")] = "",
) -> None:
    """Write the folder of a federation: the Flower app, certificates, a key for each site, a folder to hand over to
    each, start scripts, and a page that says who does what.

    fedkin federation init study --sites berlin,paris,rome --address fed.example.org:9443
    """
    from fedkin.federation.folder import Address, write
    from fedkin.federation.texts import words_of

    where = Address.read(address)
    made = write(
        folder, words_of(sites), method=method, rounds=rounds, model=model, address=where, target=target_column
    )
    if where.here:
        say(f"Only this machine reaches {where}; for others say --address HOST:PORT.")
    say(f"Read {made.path / 'README.md'}: it says who does what, in which order.")
    print(folder)


@federation_app.command()
def serve(folder: Federation) -> None:
    """Run the server of a federation until Ctrl-C."""
    from fedkin.federation.folder import Folder
    from fedkin.federation.processes import ended_by_signals
    from fedkin.federation.server import serve as served

    found = Folder.of(folder)
    with ended_by_signals():
        served(found)


@federation_app.command()
def site(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder that the site was given.")]) -> None:
    """Take part in a federation as a site, until Ctrl-C."""
    from fedkin.federation.processes import ended_by_signals
    from fedkin.federation.site import take_part

    require(folder.is_dir(), f"There is no folder {folder}.")
    with ended_by_signals():
        take_part(folder)


@federation_app.command()
def run(
    folder: Federation,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder, exactly.")] = False,
) -> None:
    """Play what app/pyproject.toml asks for on the sites that are up, and show it; Ctrl-C stops the run, which can be
    gone on with. The server must be running.

    fedkin federation run study
    """
    from fedkin.command.federation_view import View
    from fedkin.federation.control import Control
    from fedkin.federation.folder import Folder
    from fedkin.federation.follow import begin, follow
    from fedkin.federation.processes import ended_by_signals

    found = Folder.of(folder)
    with ended_by_signals(), Control(found) as control, View(Console(stderr=True)) as view:
        number = begin(found, control, resume)
        try:
            state = follow(found, control, number, view.show)
        except KeyboardInterrupt:
            control.stop(number)
            say(f"The run is stopped; go on with: fedkin federation run {folder} --resume")
            raise
    print_comparison(state, found.runs)


@federation_app.command()
def status(folder: Federation) -> None:
    """Say which sites are up, what is played, and how good the sites' models are."""
    from fedkin.command.federation_view import picture
    from fedkin.errors import Unfinished
    from fedkin.federation.control import Control
    from fedkin.federation.folder import Folder
    from fedkin.federation.state import look

    found = Folder.of(folder)
    try:
        with Control(found) as control:
            state = look(found, control)
    except Unfinished as error:
        say(str(error))
        state = look(found, None)
    Console().print(picture(state))
    if state.status:
        print(f"The last run is {state.status}{f': {state.details}' if state.details else ''}.")


@federation_app.command()
def demo(
    sites: Annotated[int, typer.Option(help="How many hospitals take part, 2 to 4.")] = 4,
    rounds: Annotated[int, typer.Option(help="Rounds of each method.")] = ROUNDS,
    method: Annotated[str, typer.Option(help="Methods, with spaces between them.")] = METHODS,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder to write. [runs/federation-1, -2, ...]")
    ] = None,
) -> None:
    """Let real hospitals learn together on this machine: a server and a site for each hospital of the dataset 'heart',
    with TLS and keys as between machines. Everything that is started is ended.

    fedkin federation demo --sites 4
    """
    from fedkin.command.federation_view import View
    from fedkin.federation import demo as hospitals
    from fedkin.federation.processes import ended_by_signals

    place = out or next(path for k in count(1) if not (path := Path("runs") / f"federation-{k}").exists())
    made = hospitals.prepare(place, sites, method, rounds, SETTINGS)
    with ended_by_signals(), View(Console(stderr=True)) as view:
        state = hospitals.play(made, view.show)
    print_comparison(state, made.runs)
    say("Hospitals with so few patients differ by some points from one run to the next.")
    say(f"Each hospital has its own models in its own folder only: {place}/sites/<hospital>/kept/runs")
    print(place)


def print_comparison(state: State, runs: Path) -> None:
    """Print how good each site's own model is, by method."""
    from fedkin.command.federation_view import compared

    if state.played:
        print(f"{METRICS[state.played[0].metric].label.capitalize()} of each site's own model:")
        Console().print(compared(state.played))
    say(f"For a page: fedkin report {runs}")
