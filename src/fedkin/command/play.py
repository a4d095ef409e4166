"""fedkin run and compare: commands that play runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.console import Console

from fedkin.answers.sentences import lines
from fedkin.command.alive import alive
from fedkin.command.app import app
from fedkin.command.columns import print_columns
from fedkin.command.lists import WIDTH
from fedkin.command.options import PlayOptions, RunOptions, shared
from fedkin.command.page import table_paths, write_report, write_tables
from fedkin.command.progress import Progress
from fedkin.command.read import fresh_folder, going_on, read_cluster, read_experiments, read_jobs
from fedkin.command.screen import plain_console
from fedkin.command.watch import beside
from fedkin.comparison.compare import carry_out, plan_for
from fedkin.comparison.experiment_files import as_file
from fedkin.comparison.plan import (
    Loaded,
    Plan,
    Planned,
    check_agreement,
    check_side_by_side,
    checked_data_seeds,
    checked_splits,
    scored_every_round,
    stored_plan,
    with_local,
)
from fedkin.comparison.processes import Killed
from fedkin.comparison.result import Comparison
from fedkin.comparison.sequence import told
from fedkin.comparison.tuned import Notes, notes_of
from fedkin.errors import BadInput, Unfinished, require, unknown
from fedkin.evaluate import KINDS
from fedkin.methods import METHODS
from fedkin.report import terminal
from fedkin.runs.callback import Callbacks
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.experiment import Experiment
from fedkin.runs.experiment_file import write_file
from fedkin.runs.targets import checked_targets
from fedkin.track import TRACKERS, MLflow, TensorBoard, Tracker, WandB

Target = Annotated[
    str,
    typer.Argument(
        metavar="METHOD|FILE",
        help="A method ('fedkin methods'), a .toml or .json file, or a module:attribute of yours; settings after an @. "
        "With --resume the folder of a run.",
    ),
]
FREE = ("rounds", "chunk", "threads", "memory", "actors", "ray_address")  # what may be said where a folder goes on
PREPARING = "Loading the data and checking the plan"
Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="METHOD...",
        help="Methods to compare: names, .toml or .json files, module:attribute of your own; settings after an @, "
        "several values are a sweep. Local is always added; 'pooled' is not. With --resume the folder of a comparison.",
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
        start(experiments, seeds, options, experiments[0].method.name, notes_of([target], experiments))


@app.command()
@shared(RunOptions)
def compare(targets: Targets, options: RunOptions) -> None:
    """Run several methods on the same data, clients and batches, always with Local, training alone, beside them.

    METHOD... are names ('fedkin methods'), .toml or .json files, or module:attribute of yours. Settings follow after an
    @; several values of one are a sweep, an arm each. With --resume it is the folder of a comparison.

    fedkin compare fedavg fedprox --data synthetic --rounds 200 --seeds 3

    fedkin compare fedavg 'fedprox@train.lam=0.1,1,10' --data digits --jobs auto --export table.tex

    fedkin compare fedavg pooled --data digits      (pooled: one model on everybody's samples, what privacy forbids)

    fedkin compare fedavg my_method.toml mymodule:my_method fedprox@lam=1@select.count=5 --track tensorboard

    fedkin compare --resume runs/compare-digits-1   (goes on where it was stopped)
    """
    if options.resume and options.out is None and len(targets) == 1 and targets[0] not in METHODS:
        resume_folder(Path(targets[0]), options)
        return
    experiments, seeds, options = read_experiments(targets, options)
    if saved(experiments, seeds, options):
        return
    notes = notes_of(targets, experiments)
    methods = with_local([experiment.method for experiment in experiments], notes)
    start([replace(experiments[0], method=method) for method in methods], seeds, options, "compare", notes)


def saved(experiments: list[Experiment], seeds: list[int], options: RunOptions) -> bool:
    """Write the experiments to a file, if that is what is asked for in place of running them."""
    if options.save is None:
        return False
    write_file(options.save, as_file(experiments, seeds, options.splits, options.data_seeds, options.goals))
    print(options.save)
    return True


def start(experiments: list[Experiment], seeds: list[int], options: RunOptions, name: str, tuned: Notes) -> None:
    """Check everything that can be checked, then make the folder and play. `tuned` is how the methods were tuned."""
    splits = checked_splits(1 if options.splits is None else options.splits)
    data_seeds = checked_data_seeds(1 if options.data_seeds is None else options.data_seeds)
    cluster, number = (
        read_cluster(options.jobs, options.ray_address),
        len(experiments) * len(seeds) * splits * data_seeds,
    )
    jobs = None if cluster else read_jobs(options.jobs, number, experiments[0].device)
    folder: Path | Callable[[], Path] = options.out or fresh_folder(name, experiments[0])
    if options.resume and options.out is None:
        raise BadInput("--resume needs the folder of the run: give it with --out, or in place of the method.")
    check_outputs(options)
    loaded, began = Loaded(), perf_counter()
    with alive(PREPARING):
        targets = options.goals or ()
        more: dict[str, Any] = {"splits": splits, "data_seeds": data_seeds, "tuned": tuned, "cluster": cluster}
        plan = plan_for(experiments, seeds, folder, loaded, options.resume, jobs, targets=targets, **more)
    prepared = perf_counter() - began
    print_columns(loaded(plan.runs[0].experiment), plain_console(stderr=True))
    carry(plan, loaded, options, prepared)


def resume_folder(folder: Path, options: RunOptions) -> None:
    """Go on with what a folder set out to do."""
    place = CommandFolder.around(folder).path
    said = [*options.of_data(), *options.of_experiment(), *(["set"] if options.settings else [])]
    said += [name for name in ("data", "seeds", "splits", "data_seeds") if getattr(options, name) is not None]
    other = sorted({name.replace("_", "-") for name in said} - {name.replace("_", "-") for name in FREE})
    fixed = f"{place} says itself what it runs; leave --{', --'.join(other)} out, or give the method and --out."
    require(not other, fixed)
    stored = stored_plan(place)
    cluster = read_cluster(options.jobs, options.ray_address)
    if cluster is None and options.jobs is None:
        cluster = stored.cluster and (options.ray_address or stored.cluster)
    asked = options.jobs if cluster is None else None
    jobs = read_jobs(asked, len(stored.runs), stored.runs[0].experiment.device) or stored.jobs
    free = {name: getattr(options, name) for name in FREE if not (cluster and name == "ray_address")}
    free = {name: value for name, value in free.items() if value is not None}
    runs = [Planned(replace(one.experiment, **free), one.folder) for one in stored.runs]
    check_side_by_side([one.experiment for one in runs], jobs, cluster)
    check_agreement(place, [one.experiment.described() for one in stored.runs], runs)
    targets = stored.targets
    if options.goals:
        scored_every_round([one.experiment for one in runs])
        targets = checked_targets(options.goals, {method.name: KINDS for method in stored.methods}, None)
    carry(replace(stored, runs=runs, jobs=jobs, targets=targets, cluster=cluster), Loaded(), options)


def carry(plan: Plan, loaded: Loaded, options: PlayOptions, prepared: float = 0.0) -> None:
    """Carry a plan out with a progress display, and show what came out. `prepared`: the seconds of loading the data."""
    screen = plain_console(stderr=True)
    plan, profiled = profiling(plan) if options.profile else (plan, None)
    trackers = trackers_for(options.track, plan.folder.path)
    wanted = [table_paths(texts) for texts in (options.export, options.export_clients, options.export_pairs)]
    go_on = going_on("run", plan.folder.path, (one.experiment for one in plan.runs))
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
            raise typer.Exit(progress.code)
        page = show(found, options.as_json, screen)
        end_page(f"This page no longer changes; {f'the report is {page}' if page else 'its run is over'}.")
        write_tables(found, wanted, screen)
    if profiled is not None and (profile := profiled.run.profile) is not None:
        where = screen if options.as_json else plain_console()
        where.print(f"\n{profiled.name}\n{profile.since(prepared)}", highlight=False, markup=False, soft_wrap=True)


def profiling(plan: Plan) -> tuple[Plan, Planned]:
    """Return the plan with its first run that is not done asked where its time goes, and that run."""
    at = next((i for i, one in enumerate(plan.runs) if not one.done), None)
    require(at is not None, "All runs are done, so there is no time to profile; leave --profile out.")
    one = replace(plan.runs[at or 0], profile=True)
    return replace(plan, runs=[one if i == at else other for i, other in enumerate(plan.runs)]), one


def check_outputs(options: PlayOptions) -> None:
    """Refuse tables that cannot be written and trackers that are not installed, before anything is made."""
    for texts in (options.export, options.export_clients, options.export_pairs):
        table_paths(texts)
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
        several = "methods" in found.summary
        if "sites" in found.summary:
            for sentence in lines(found.summary["sites"]):
                plain_console().print(sentence, highlight=False, markup=False, soft_wrap=True)
        for sentence in found.summary.get("tuned", {}).get("sentences", []):
            plain_console().print(sentence, highlight=False, markup=False, soft_wrap=True)
        table = terminal.comparison_table(found.summary) if several else terminal.run_table(found.summary)
        wide = max(
            WIDTH, plain_console().width, plain_console(width=1000).measure(table).maximum
        )  # no name or number is cut
        plain_console(width=wide).print(table)
        if targets := found.summary.get("targets"):
            plain_console(width=wide).print(terminal.targets_table(targets, list(found.methods)))
    page = write_report(found.folder, screen)
    end = f", its report is {page}" if page else ""
    screen.print(f"The run is in {found.folder}{end}", highlight=False, soft_wrap=True)
    return page
