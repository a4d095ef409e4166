"""The command line: fedkin run, compare, preset, methods, data, report."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import click
import typer
from rich.console import Console

from fedkin import presets
from fedkin.command.lists import WIDTH, list_datasets, list_methods, list_presets
from fedkin.command.options import DataOptions, PlayOptions, PresetOptions, RunOptions, shared
from fedkin.command.progress import Progress
from fedkin.command.read import fresh_folder, read_experiment, read_jobs, read_methods, read_seeds
from fedkin.command.settings import with_settings
from fedkin.comparison.compare import carry_out, plan_for
from fedkin.comparison.jobs import Killed
from fedkin.comparison.plan import Loaded, Plan, Planned, check_agreement, stored_plan, with_local
from fedkin.comparison.result import Comparison
from fedkin.data import Data
from fedkin.errors import BadInput, require
from fedkin.methods import METHODS
from fedkin.report import terminal
from fedkin.runs import files
from fedkin.runs.experiment import Experiment
from fedkin.runs.folder import CommandFolder

WRITING = {getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EACCES", "EROFS", "ENOTDIR", "EEXIST", "EISDIR")}


class Unfinished(Exception):
    """Something stopped the command that is no mistake of the user's; the sentence says how to go on."""


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

Target = Annotated[
    str,
    typer.Argument(
        metavar="METHOD|FILE", help="A method, a saved experiment.json or .toml, or with --resume the folder of a run."
    ),
]
PresetName = Annotated[str, typer.Argument(metavar="PRESET|list", help="A preset, or 'list'.")]
Targets = Annotated[list[str], typer.Argument(metavar="METHOD...", help="Methods to compare; Local is always added.")]


@app.command()
@shared(RunOptions)
def run(target: Target, options: RunOptions) -> None:
    """Run one method: METHOD|FILE is a method ('fedkin methods'), a saved experiment.json or .toml, or, with --resume,
    the folder of a run.

    fedkin run fedavg --data mnist --partition dirichlet:0.5 --clients 20 --model dnn:100 --rounds 50
    """
    if options.resume and options.out is None and target not in METHODS:
        resume_folder(Path(target), options)
        return
    experiment, seeds = read_experiment(target, options)
    method = with_settings(experiment.method, options.settings or [])
    start([replace(experiment, method=method)], seeds, options, method.name)


@app.command()
@shared(RunOptions)
def compare(targets: Targets, options: RunOptions) -> None:
    """Run several methods on the same data, clients and batches, always with Local, training alone, beside them.

    fedkin compare fedavg fedprox --data synthetic --rounds 200 --seeds 3
    """
    if options.resume and options.out is None and len(targets) == 1 and targets[0] not in METHODS:
        resume_folder(Path(targets[0]), options)
        return
    methods = read_methods(targets, options.settings or [])
    experiment, seeds = read_experiment(targets[0], options)
    start([replace(experiment, method=method) for method in with_local(methods)], seeds, options, "compare")


@app.command()
@shared(PresetOptions)
def preset(name: PresetName, options: PresetOptions) -> None:
    """Run a table of a paper, all its rows and seeds, and print our numbers beside the published ones; 'fedkin preset
    list' says which there are.

    fedkin preset adafl-mnist-reduced --jobs 2
    """
    if name == "list":
        list_presets()
        return
    chosen = presets.named(name)
    experiments = chosen.experiments(options.rounds)
    seeds = read_seeds(options.seeds, {"seeds": list(chosen.seeds)})
    jobs = read_jobs(options.jobs or "auto", len(experiments) * len(seeds), experiments[0].device)
    loaded = Loaded()
    folder = options.out or Path("runs") / name
    carry(plan_for(experiments, seeds, folder, loaded, options.resume, jobs, name), loaded, options)


def start(experiments: list[Experiment], seeds: list[int], options: RunOptions, name: str) -> None:
    """Check everything that can be checked, then make the folder and play."""
    jobs = read_jobs(options.jobs, len(experiments) * len(seeds), experiments[0].device)
    folder: Path | Callable[[], Path] = options.out or fresh_folder(name, experiments[0])
    if options.resume and options.out is None:
        raise BadInput("--resume needs the folder of the run: give it with --out, or in place of the method.")
    loaded = Loaded()
    carry(plan_for(experiments, seeds, folder, loaded, options.resume, jobs), loaded, options)


def resume_folder(folder: Path, options: RunOptions) -> None:
    """Go on with what a folder set out to do."""
    place = CommandFolder.around(folder).path
    said = [*options.of_data(), *options.of_experiment(), *(["set"] if options.settings else [])]
    said += [name for name in ("data", "seeds") if getattr(options, name) is not None]
    other = sorted({name.replace("_", "-") for name in said} - {"rounds"})
    fixed = f"{place} says itself what it runs; leave --{', --'.join(other)} out, or give the method and --out."
    require(not other, fixed)
    stored = stored_plan(place)
    jobs = read_jobs(options.jobs, len(stored.runs), stored.runs[0].experiment.device) or stored.jobs
    runs = stored.runs
    if options.rounds is not None:
        runs = [Planned(replace(one.experiment, rounds=options.rounds), one.folder) for one in runs]
    check_agreement(place, [one.experiment.described() for one in stored.runs], runs)
    carry(Plan(stored.folder, runs, jobs, stored.preset), Loaded(), options)


def carry(plan: Plan, loaded: Loaded, options: PlayOptions) -> None:
    """Carry a plan out with a progress display, and show what came out."""
    screen = Console(stderr=True)
    go_on = f"Go on with: fedkin run --resume {plan.folder.path}"
    with Progress(screen, plan.runs) as progress:
        try:
            found = carry_out(
                plan,
                loaded,
                resume=options.resume,
                watching=progress.watching,
                warn=progress.warn,
                stopping=lambda: progress.stopping,
            )
        except Killed as error:
            raise Unfinished(f"{error} {go_on}") from None
    if found is None:
        screen.print(f"Stopped and saved. {go_on}", highlight=False, soft_wrap=True)
        raise typer.Exit(130)
    show(found, options.as_json, screen)


def show(found: Comparison, as_json: bool, screen: Console) -> None:
    """Print the table or the JSON summary, and write the page."""
    if as_json:
        sys.stdout.write(json.dumps(found.summary, indent=2) + "\n")
    else:
        several, preset = "methods" in found.summary, found.summary.get("preset")
        table = terminal.comparison_table(found.summary) if several else terminal.accuracy_table(found.summary)
        wide = max(WIDTH, Console().width, Console(width=1000).measure(table).maximum)  # no name or number is cut
        Console(width=wide).print(table if preset is None else terminal.preset_table(preset))
    page = write_report(found.folder, screen)
    end = f", its report is {page}" if page else ""
    screen.print(f"The run is in {found.folder}{end}", highlight=False, soft_wrap=True)


def write_report(folder: Path, screen: Console) -> Path | None:
    """Write the page of a folder; returns its path, or None where the extra for reports is not installed."""
    try:
        from fedkin.report.page import write
    except ModuleNotFoundError:
        hint = f"For a report with pictures: pip install 'fedkin[report]', then: fedkin report {folder}"
        screen.print(hint, markup=False, highlight=False, soft_wrap=True)
        return None
    return write(folder)


@app.command()
def methods() -> None:
    """List the methods and what they are made of."""
    list_methods()


@app.command()
def report(folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run or a comparison.")]) -> None:
    """Write a page with the table, the curves and every client's gain over training alone."""
    begun = CommandFolder(folder).runs()
    require(begun, f"{folder} is not a run of fedkin; give the folder that 'fedkin run' named.")
    page = write_report(folder, Console(stderr=True))
    if page is None:
        raise typer.Exit(2)
    print(page)


@data_app.command("list")
def data_list() -> None:
    """List the datasets, and whether they are at hand."""
    list_datasets()


@data_app.command("show")
@shared(DataOptions)
def data_show(
    name: Annotated[str, typer.Argument(metavar="DATA", help="A dataset or a path to own data.")] = "synthetic",
    out: Annotated[Path | None, typer.Option(help="File of the picture. [<data>-<partition>-<irrelevant>.svg]")] = None,
    *,
    options: DataOptions,
) -> None:
    """Print how many samples of each class every client has, and draw it.

    fedkin data show mnist --partition dirichlet:0.5 --clients 20
    """
    from fedkin.data import load, picture

    federation = load(Data(name=name, **options.of_data()))
    for line in picture.table(federation):
        print(line)
    word = "-".join(w for w in (name, options.partition, options.irrelevant) if w)
    path = out or Path("".join(c if c.isalnum() or c in ".-" else "-" for c in word) + ".svg")
    picture.draw(federation, path)
    print(f"Picture: {path}")


def main() -> None:
    """Run the command. Bad input is one sentence and exit code 2; any other failure keeps its traceback."""
    try:
        code = app(standalone_mode=False)
    except BadInput as error:
        code = complain(str(error))
    except files.Damaged as error:
        code = complain(f"{error}.")
    except Unfinished as error:
        code = complain(str(error), 1)
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        code = complain(error.format_message())
    except OSError as error:
        if error.errno is None or error.errno not in WRITING:
            raise
        where = f" at {error.filename}" if error.filename else ""
        advice = (
            "free some space and go on with --resume"
            if error.errno in (errno.ENOSPC, errno.EDQUOT)
            else "choose another --out"
        )
        code = complain(f"Cannot write{where}: {os.strerror(error.errno)}; {advice}.")
    sys.exit(code or 0)


def complain(sentence: str, code: int = 2) -> int:
    """Print a sentence on standard error and return the exit code."""
    Console(stderr=True).print(f"fedkin: {sentence}", style="red", highlight=False, markup=False, soft_wrap=True)
    return code


if __name__ == "__main__":
    main()
