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
from fedkin.command.page import table_paths, write_report, write_tables
from fedkin.command.progress import Progress
from fedkin.command.read import fresh_folder, read_experiments, read_jobs, read_seeds
from fedkin.command.watch import beside
from fedkin.comparison.compare import carry_out, plan_for
from fedkin.comparison.experiment_files import as_file
from fedkin.comparison.jobs import Killed
from fedkin.comparison.plan import Loaded, Plan, Planned, check_agreement, checked_splits, stored_plan, with_local
from fedkin.comparison.result import Comparison
from fedkin.comparison.sequence import told
from fedkin.errors import BadInput, require, unknown
from fedkin.methods import METHODS
from fedkin.report import terminal
from fedkin.runs.callback import Callbacks
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.experiment import Experiment
from fedkin.runs.experiment_file import write_file
from fedkin.track import TRACKERS, MLflow, TensorBoard, Tracker, WandB

Target = Annotated[
    str,
    typer.Argument(
        metavar="METHOD|FILE",
        help="A method ('fedkin methods'), a .toml or .json file, or a module:attribute of yours; settings after an @. "
        "With --resume the folder of a run.",
    ),
]
PREPARING = "Loading the data and checking the plan"
PresetName = Annotated[str, typer.Argument(metavar="PRESET|list", help="A preset, or 'list'.")]
Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="METHOD...",
        help="Methods to compare: names, .toml or .json files, module:attribute of your own; settings after an @, "
        "several values are a sweep. Local is always added. With --resume the folder of a comparison.",
    ),
]


@app.command()
@shared(RunOptions)
def run(target: Target, options: RunOptions) -> None:
    """Run one method.

    METHOD|FILE is a method ('fedkin methods'), a .toml or .json file, or a module:attribute of yours, with settings
    after an @. With --resume it is the folder of a run.

    fedkin run fedavg --data mnist --partition dirichlet:0.5 --clients 20 --model dnn:100 --rounds 50

    fedkin run fedprox --data patients.csv --client-column hospital --target-column outcome --set lam=0.1

    fedkin run mymodule:my_method --data digits     (mymodule.py lies in this folder)

    fedkin run fedmcsa --data digits --save experiment.toml; fedkin run experiment.toml

    fedkin run --resume runs/fedavg-mnist-1         (goes on where it was stopped)
    """
    if options.resume and options.out is None and target not in METHODS:
        resume_folder(Path(target), options)
        return
    experiments, seeds, options = read_experiments([target], options)
    names = ", ".join(experiment.method.name for experiment in experiments)
    require(len(experiments) == 1, f"fedkin run plays one method, and these are several: {names}; use fedkin compare.")
    if not saved(experiments, seeds, options):
        start(experiments, seeds, options, experiments[0].method.name)


@app.command()
@shared(RunOptions)
def compare(targets: Targets, options: RunOptions) -> None:
    """Run several methods on the same data, clients and batches, always with Local, training alone, beside them.

    METHOD... are names ('fedkin methods'), .toml or .json files, or module:attribute of yours. Settings follow after an
    @; several values of one are a sweep, an arm each. With --resume it is the folder of a comparison.

    fedkin compare fedavg fedprox --data synthetic --rounds 200 --seeds 3

    fedkin compare fedavg 'fedprox@train.lam=0.1,1,10' --data digits --jobs auto --export table.tex

    fedkin compare fedavg my_method.toml mymodule:my_method fedprox@lam=1@select.count=5 --track tensorboard

    fedkin compare --resume runs/compare-digits-1   (goes on where it was stopped)
    """
    if options.resume and options.out is None and len(targets) == 1 and targets[0] not in METHODS:
        resume_folder(Path(targets[0]), options)
        return
    experiments, seeds, options = read_experiments(targets, options)
    if saved(experiments, seeds, options):
        return
    methods = with_local([experiment.method for experiment in experiments])
    start([replace(experiments[0], method=method) for method in methods], seeds, options, "compare")


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


def saved(experiments: list[Experiment], seeds: list[int], options: RunOptions) -> bool:
    """Write the experiments to a file, if that is what is asked for in place of running them."""
    if options.save is None:
        return False
    write_file(options.save, as_file(experiments, seeds, options.splits))
    print(options.save)
    return True


def start(experiments: list[Experiment], seeds: list[int], options: RunOptions, name: str) -> None:
    """Check everything that can be checked, then make the folder and play."""
    splits = checked_splits(1 if options.splits is None else options.splits)
    jobs = read_jobs(options.jobs, len(experiments) * len(seeds) * splits, experiments[0].device)
    folder: Path | Callable[[], Path] = options.out or fresh_folder(name, experiments[0])
    if options.resume and options.out is None:
        raise BadInput("--resume needs the folder of the run: give it with --out, or in place of the method.")
    check_outputs(options)
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
    trackers = trackers_for(options.track, plan.folder.path)
    tables, clients = table_paths(options.export), table_paths(options.export_clients)
    go_on = f"Go on with: fedkin run --resume {plan.folder.path}"
    progress = Progress(screen, plan.runs)
    with beside(options.watch, plan.folder.path, progress.doing, screen) as end_page:
        with progress:
            try:
                found = carry_out(
                    plan,
                    loaded,
                    resume=options.resume,
                    watching=lambda *one: Callbacks((progress.watching(*one), told(trackers)(*one))),
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
        write_tables(found, tables, clients, screen)


def check_outputs(options: PlayOptions) -> None:
    """Refuse tables that cannot be written and trackers that are not installed, before anything is made."""
    table_paths(options.export)
    table_paths(options.export_clients)
    trackers_for(options.track, Path())


def trackers_for(names: list[str] | None, folder: Path) -> list[Tracker]:
    """Return the trackers of these names for the runs in a folder; each is checked to be installed."""
    found: list[Tracker] = []
    for name in dict.fromkeys(names or ()):
        if name == "tensorboard":
            found.append(TensorBoard(folder / "tensorboard"))
        elif name == "mlflow":
            found.append(MLflow(experiment=folder.name))
        elif name == "wandb":
            found.append(WandB(group=folder.name))
        else:
            raise unknown("tracker", name, TRACKERS)
    return found


def show(found: Comparison, as_json: bool, screen: Console) -> Path | None:
    """Print the table or the JSON summary, and write the page; returns its path."""
    if as_json:
        sys.stdout.write(json.dumps(found.summary, indent=2) + "\n")
    else:
        several, preset = "methods" in found.summary, found.summary.get("preset")
        if "sites" in found.summary and preset is None:
            for sentence in lines(found.summary["sites"]):
                Console().print(sentence, highlight=False, markup=False, soft_wrap=True)
        table = terminal.comparison_table(found.summary) if several else terminal.run_table(found.summary)
        wide = max(WIDTH, Console().width, Console(width=1000).measure(table).maximum)  # no name or number is cut
        Console(width=wide).print(table if preset is None else terminal.preset_table(preset))
    page = write_report(found.folder, screen)
    end = f", its report is {page}" if page else ""
    screen.print(f"The run is in {found.folder}{end}", highlight=False, soft_wrap=True)
    return page
