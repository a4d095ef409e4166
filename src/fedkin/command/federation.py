"""fedkin federation: the folder of a federation, its server and its sites."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkin.command.app import federation_app
from fedkin.command.export import say
from fedkin.errors import require

ADDRESS = "127.0.0.1:9443"
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
    made = write(folder, words_of(sites), method=method, rounds=rounds, model=model, address=where, target=target_column)
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
