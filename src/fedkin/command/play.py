"""fedkin run, compare and preset: commands that play runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fedkin import presets
from fedkin.answers.sentences import lines
from fedkin.command.alive import alive
from fedkin.command.app import Unfinished, app
from fedkin.command.columns import print_columns
from fedkin.command.lists import WIDTH, list_presets
from fedkin.command.options import PlayOptions, PresetOptions, RunOptions, shared
from fedkin.command.page import write_report
from fedkin.command.progress import Progress
from fedkin.command.read import fresh_folder, read_experiment, read_jobs, read_methods, read_seeds
from fedkin.command.settings import with_settings
from fedkin.command.watch import beside
from fedkin.comparison.compare import carry_out, plan_for
from fedkin.comparison.jobs import Killed
from fedkin.comparison.plan import Loaded, Plan, Planned, check_agreement, checked_splits, stored_plan, with_local
from fedkin.comparison.result import Comparison
from fedkin.errors import BadInput, require
from fedkin.methods import METHODS
from fedkin.report import terminal
from fedkin.runs.experiment import Experiment
from fedkin.runs.folder import CommandFolder

Target = Annotated[
    str,
    typer.Argument(
        metavar="METHOD|FILE", help="A method, a saved experiment.json or .toml, or with --resume the folder of a run."
    ),
]
PREPARING = "Loading the data and checking the plan"
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
    with alive(PREPARING):
        plan = plan_for(experiments, seeds, folder, loaded, options.resume, jobs, name)
    carry(plan, loaded, options)


def start(experiments: list[Experiment], seeds: list[int], options: RunOptions, name: str) -> None:
    """Check everything that can be checked, then make the folder and play."""
    splits = checked_splits(1 if options.splits is None else options.splits)
    jobs = read_jobs(options.jobs, len(experiments) * len(seeds) * splits, experiments[0].device)
    folder: Path | Callable[[], Path] = options.out or fresh_folder(name, experiments[0])
    if options.resume and options.out is None:
        raise BadInput("--resume needs the folder of the run: give it with --out, or in place of the method.")
    loaded = Loaded()
    with alive(PREPARING):
        plan = plan_for(experiments, seeds, folder, loaded, options.resume, jobs, splits=splits)
    print_columns(loaded(plan.runs[0].experiment), Console(stderr=True))
    carry(plan, loaded, options)


def resume_folder(folder: Path, options: RunOptions) -> None:
    """Go on with what a folder set out to do."""
    place = CommandFolder.around(folder).path
    said = [*options.of_data(), *options.of_experiment(), *(["set"] if options.settings else [])]
    said += [name for name in ("data", "seeds", "splits") if getattr(options, name) is not None]
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
    progress = Progress(screen, plan.runs)
    with beside(options.watch, plan.folder.path, progress.doing, screen) as end_page:
        with progress:
            try:
                found = carry_out(
                    plan,
                    loaded,
                    resume=options.resume,
                    watching=progress.watching,
                    warn=progress.warn,
                    stopping=lambda: progress.stopping,
                    telling=progress.telling,
                )
            except Killed as error:
                raise Unfinished(f"{error} {go_on}") from None
        if found is None:
            end_page(f"Stopped and saved; this page no longer changes. {go_on}")
            screen.print(f"Stopped and saved. {go_on}", highlight=False, soft_wrap=True)
            raise typer.Exit(130)
        page = show(found, options.as_json, screen)
        end_page(f"This page no longer changes; {f'the report is {page}' if page else 'its run is over'}.")


def show(found: Comparison, as_json: bool, screen: Console) -> Path | None:
    """Print the table or the JSON summary, and write the page; returns its path."""
    if as_json:
        sys.stdout.write(json.dumps(found.summary, indent=2) + "\n")
    else:
        several, preset = "methods" in found.summary, found.summary.get("preset")
        if "sites" in found.summary and preset is None:
            for sentence in lines(found.summary["sites"]):
                Console().print(sentence, highlight=False, markup=False, soft_wrap=True)
        table = terminal.comparison_table(found.summary) if several else terminal.accuracy_table(found.summary)
        wide = max(WIDTH, Console().width, Console(width=1000).measure(table).maximum)  # no name or number is cut
        Console(width=wide).print(table if preset is None else terminal.preset_table(preset))
    page = write_report(found.folder, screen)
    end = f", its report is {page}" if page else ""
    screen.print(f"The run is in {found.folder}{end}", highlight=False, soft_wrap=True)
    return page
