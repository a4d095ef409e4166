"""fedkin preset: plays tables and figures of papers, and sets our numbers beside the published ones."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedkin import presets
from fedkin.command.alive import alive
from fedkin.command.app import Verify, app
from fedkin.command.lists import WIDTH
from fedkin.command.options import option, shared
from fedkin.command.progress import Progress
from fedkin.command.read import read_cluster, read_jobs
from fedkin.command.screen import plain_console
from fedkin.comparison.exports import Grid
from fedkin.comparison.plan import Planned, checked_seeds
from fedkin.comparison.processes import Killed
from fedkin.engines.cluster.connection import check_cluster
from fedkin.errors import Unfinished, require, unknown
from fedkin.presets.preset import Preset
from fedkin.reproduce import tables
from fedkin.reproduce.cost import seconds
from fedkin.reproduce.outcome import Outcome
from fedkin.reproduce.play import concluded, play, runs_of, write_json
from fedkin.reproduce.results import committed, result_path
from fedkin.reproduce.store import FOLDER, Store
from fedkin.runs import files

Names = Annotated[
    list[str], typer.Argument(metavar="PRESET...|list", help="Presets, as fedmcsa/table2 or 'fedmcsa/*'; or list.")
]
COLOURS = {"holds": "green", "does not hold": "red"}  # all else is yellow


@dataclass(frozen=True)
class PresetOptions:
    """The options of a preset, which fixes everything else."""

    scale: Annotated[
        str, option("small: at most half an hour on two cores, every claim still testable; full: as in the paper.")
    ] = "small"
    seeds: Annotated[int | None, option("Number of repetitions. [the preset's]")] = None
    rounds: Annotated[int | None, option("Number of rounds of every run, to try a preset out. [the preset's]")] = None
    only: Annotated[
        list[str] | None,
        option("Play only the columns that fit, as 'Syn*'; the others stay as they are; may be repeated."),
    ] = None
    jobs: Annotated[
        str | None, option("Runs side by side, each in a process of its own; ray: on a cluster. [auto: one a core]")
    ] = None
    ray_address: Annotated[str | None, option("The cluster of --jobs ray: host:port or auto. [here]")] = None
    out: Annotated[Path, option("Folder of all runs of presets; what is done there is not played again.")] = FOLDER
    results: Annotated[Path | None, option("Write the result as JSON to this folder too, as docs/results.")] = None
    verify: Verify = True
    read: Annotated[bool, option("Play nothing; read what is done.", "--read")] = False
    as_json: Annotated[bool, option("Print the results as JSON, and nothing else.", "--json")] = False


@app.command()
@shared(PresetOptions)
def preset(names: Names, options: PresetOptions) -> None:
    """Run tables and figures of papers and print paper / ours ± spread / difference, and whether each claim holds.

    PRESET... are named by paper and place; 'fedkin preset list' says which there are, what they claim and what they
    cost. A command that was stopped goes on where it was; presets share the runs that they have in common.

    fedkin preset fedmcsa/table2 --jobs 2

    fedkin preset fedmcsa/table2 --scale full --only 'Syn*' --seeds 3

    fedkin preset 'adafl/*' --scale small --results docs/results
    """
    if names == ["list"]:
        list_presets()
        return
    if options.seeds is not None:
        checked_seeds(options.seeds)
    require(options.rounds is None or options.rounds >= 1, f"--rounds must be at least 1, not {options.rounds}.")
    fits = options.results is None or options.rounds is None
    require(fits, "A result is kept only of a preset with its own number of rounds; leave --rounds or --results out.")
    asked = chosen_presets(names, options.scale)
    chosen = [one.shortened(max(one.seeds, options.seeds or 0), options.rounds) for one in asked]  # what is read
    store, screen = Store(options.out), plain_console(stderr=True)
    runs = runs_of([one.shortened(options.seeds) for one in chosen], store, options.only or ())
    if not options.read:
        play_all(runs, store, options, screen)
    kept = [None if options.results is None else committed(one.name, one.scale, options.results) for one in chosen]
    found = [concluded(one, store, options.rounds, before) for one, before in zip(chosen, kept, strict=True)]
    for one, (outcome, folder) in zip(chosen, found, strict=True):
        if options.results is not None and outcome["runs"]:
            path = result_path(one.name, one.scale, options.results)
            files.make_folder(path.parent)
            write_json(path, outcome)
        if options.as_json:
            sys.stdout.write((folder / "result.json").read_text())
        else:
            show(outcome)
            screen.print(f"The result is in {folder}: page, tables and numbers.", highlight=False, soft_wrap=True)


def chosen_presets(names: list[str], scale: str) -> list[Preset]:
    """The presets of these names or patterns."""
    if scale not in presets.SCALES:
        raise unknown("scale", scale, presets.SCALES)
    found: dict[str, None] = {}
    for name in names:
        fitting = [one for one in presets.PRESETS if fnmatchcase(one, name)]
        if not fitting:
            raise unknown("preset", name, presets.PRESETS)
        found |= dict.fromkeys(fitting)
    return [presets.named(name, scale) for name in found]


def list_presets() -> None:
    """Print every preset: what it claims, about what it costs here, and what came out where a result is committed."""
    table = Table("preset", "claims", "small", "full", box=SIMPLE_HEAD, show_lines=True)
    with alive("Measuring how fast this machine is"):
        for name in presets.PRESETS:
            cells = []
            for scale in presets.SCALES:
                found = committed(name, scale)
                cost = f"about {duration(seconds(presets.named(name, scale)))}"
                cells.append(cost if found is None else f"{cost}\n{tally(found)}")
            claims = [f"{claim.text}" for claim in presets.named(name).claims if claim.by == "paper"]
            table.add_row(name, "\n".join(claims) or presets.named(name).title, *cells)
    console = plain_console(width=max(WIDTH, plain_console().width))
    console.print(table)
    console.print(
        "Times are of one core; --jobs divides them. Results are committed in docs/results and shown in docs/papers."
    )


def duration(spent: float) -> str:
    """A time in the unit that people would use."""
    for unit, length in (("years", 31_557_600), ("days", 86_400), ("hours", 3_600), ("min", 60)):
        if spent >= 1.5 * length:
            return f"{spent / length:,.0f} {unit}"
    return f"{spent:.0f} s"


def tally(found: Outcome) -> str:
    """How many claims of the paper have which verdict in a committed result."""
    counts = Counter(claim["verdict"] for claim in found["claims"] if claim["by"] == "paper")
    return "; ".join(f"{number} {verdict}" for verdict, number in counts.items()) or "result committed"


def play_all(runs: list[Planned], store: Store, options: PresetOptions, screen: Console) -> None:
    """Play the runs of presets with one display for all."""
    cluster = read_cluster(options.jobs, options.ray_address)
    require(cluster or options.ray_address is None, "The address of a cluster is for --jobs ray; add it.")
    if cluster is not None:
        check_cluster(cluster)
    jobs = read_jobs("auto" if cluster else options.jobs or "auto", len(runs), "cpu") or 1
    again = "Go on with the same command."
    with Progress(screen, runs) as progress:
        try:
            done = play(runs, store, jobs, progress.watching, progress.warn, lambda: progress.stopping, cluster)
        except Killed as error:
            raise Unfinished(f"{error} {again}") from None
    if not done:
        screen.print(f"Stopped and saved. {again}", highlight=False, soft_wrap=True)
        raise typer.Exit(130)


def show(outcome: Outcome) -> None:
    """Print the table and the claims of a preset."""
    console = plain_console()
    wide = plain_console(width=max(WIDTH, console.width))
    wide.print(Text(f"{outcome['preset']}, {outcome['scale']}: {outcome['title']}", "bold"))
    wide.print(ruled(tables.long_table(outcome)))
    wide.print(Text(f"{tables.readings(outcome)} {outcome['note']}", "italic dim"))
    for claim in outcome["claims"]:
        words = tables.verdict(claim)
        wide.print(Text.assemble((words, COLOURS.get(claim["verdict"], "yellow")), f": {claim['text']}"))
        if claim["steps"]:
            wide.print(Text(f"    {tables.weakest(claim)}", "dim"))


def ruled(grid: Grid) -> Table:
    """A table of texts."""
    table = Table(box=SIMPLE_HEAD)
    for i, title in enumerate(grid[0]):
        table.add_column(title.text, justify="left" if i < 2 else "right")
    for line in grid[1:]:
        table.add_row(*(cell.text + cell.spread for cell in line))
    return table
