"""fedkin tune: the settings of methods that are best by validation samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fedkin.command.alive import alive
from fedkin.command.app import app
from fedkin.command.columns import print_columns
from fedkin.command.options import DataOptions, RunOptions, option, shared
from fedkin.command.progress import Progress
from fedkin.command.read import fresh_folder, going_on, read_experiments, read_jobs
from fedkin.command.screen import plain_console
from fedkin.command.trials import TrialProgress
from fedkin.comparison.processes import Killed
from fedkin.errors import Unfinished, require
from fedkin.methods import METHODS
from fedkin.metrics import METRICS
from fedkin.runs.validation import SHARE
from fedkin.runs.verdict import is_local
from fedkin.tuning.budget import Budget
from fedkin.tuning.loaded import Validated
from fedkin.tuning.plan import Plan, plan_for, stored_plan, tunable_locals
from fedkin.tuning.space import read_space
from fedkin.tuning.tune import Tuned, carry_out

SHOWN = 10  # trials in the table of a method

Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="METHOD...",
        help="Methods to tune: names, .toml or .json files, module:attribute of your own; settings after an @. "
        "With --resume the folder of a tuning.",
    ),
]


@dataclass(frozen=True)
class TuneOptions(DataOptions):
    """The options of `fedkin tune`. Those that `fedkin run` has too mean the same here."""

    space: Annotated[
        list[str] | None,
        option(
            "What to try of a field: a range, as train.lam=0.1..10:log, or values, as collaborate.sigma=10,30,100; may "
            "be repeated. [the learning rate and the paper's numbers, around their defaults]"
        ),
    ] = None
    trials: Annotated[int | None, option("Settings to try, for each method. [20]")] = None
    grid: Annotated[bool, option("Try every combination of the listed values, in place of a search.", "--grid")] = False
    prune: Annotated[
        bool, option("Give up trials that fall behind the median of the others.", "--prune/--no-prune")
    ] = True
    average: Annotated[
        str | None, option("macro: the mean over clients decides; micro: over their samples. [macro]")
    ] = None
    search_seed: Annotated[int | None, option("Seed of the settings that are tried. [0]")] = None
    validation: Annotated[
        float | None, option(f"Share of each client's samples held out for validation. [{SHARE}]")
    ] = None
    rounds: Annotated[int | None, option("Number of rounds of every trial. [100]")] = None
    seeds: Annotated[
        str | None, option("How many seeds (3: 0, 1, 2) or which (0,5,7) every trial is played with. [1]")
    ] = None
    jobs: Annotated[
        str | None, option("Trials side by side, each in a process of its own: a number, or auto: one a core. [1]")
    ] = None
    out: Annotated[Path | None, option("Folder of the studies and of the files with the best settings.")] = None
    resume: Annotated[
        bool, option("Go on with what lies in --out, or in the folder given in place of a method.", "--resume")
    ] = False
    data: Annotated[str | None, option("A dataset ('fedkin data list') or a path to own data. [synthetic]")] = None
    model: Annotated[str | None, option("mlr, dnn:100, lenet, ..., or package.module:Class. [mlr]")] = None
    engine: Annotated[
        str | None, option("stacked (many clients at once), plain (one after another), ray or flower. [stacked]")
    ] = None
    evaluate_every: Annotated[
        int | None, option("Score every so many rounds. [12 rounds at least; more within an eighth of the time]")
    ] = None
    metric: Annotated[
        str | None,
        option("What decides: accuracy, balanced_accuracy, auc, f1, ...; for numbers r2, rmse. [accuracy, or r2]"),
    ] = None
    class_weights: Annotated[
        str | None, option("balanced: in training all classes of a client count the same. [none]")
    ] = None
    dp: Annotated[
        str | None,
        option("Clip updates and add noise in every trial, as in clip=1.0,noise=0.8 (docs/privacy.md). [off]"),
    ] = None
    threads: Annotated[int | None, option("Cores of a trial. [its share of the machine's]")] = None
    chunk: Annotated[int | None, option("Clients trained at once by the stacked engine: a speed knob only.")] = None
    device: Annotated[str | None, option("cpu or cuda. [cpu]")] = None
    settings: Annotated[
        list[str] | None, option("Change a field that is not tuned, as --set train.epochs=1; may be repeated.", "--set")
    ] = None

    def of_run(self) -> RunOptions:
        """Return the options that `fedkin run` has too."""
        known = {entry.name for entry in fields(RunOptions)}
        return RunOptions(**{name: value for name, value in self.__dict__.items() if name in known})


@app.command()
@shared(TuneOptions)
def tune(targets: Targets, options: TuneOptions) -> None:
    """Search the settings of methods that are best by validation samples. Test samples are never looked at.

    METHOD... are names ('fedkin methods'), .toml or .json files, or module:attribute of yours. Every method gets the
    same number of trials and rounds. The folder gets METHOD.toml for each, and comparison.toml with all of them, which
    'fedkin compare' runs. Where several methods are tuned, Local, training alone, is tuned too. With --resume it is the
    folder of a tuning.

    fedkin tune fedmcsa --data synthetic --space train.lam=0.1..10:log --space collaborate.sigma=10,30,50,100 --jobs 2

    fedkin tune fedavg fedmcsa fedacs --data digits --rounds 50 --trials 20 --out tuned; fedkin compare
    tuned/comparison.toml

    fedkin tune fedmcsa --grid --space train.lam=1,5,15 --space collaborate.sigma=10,50,100 --no-prune

    fedkin tune --resume tuned      (goes on where it was stopped; with --trials 40 it tries more)
    """
    loaded = Validated()
    with alive("Loading the data and checking the plan"):
        going_on = options.resume and options.out is None and len(targets) == 1 and targets[0] not in METHODS
        plan = resumed(Path(targets[0]), options, loaded) if going_on else planned(targets, options, loaded)
    screen = plain_console(stderr=True)
    print_columns(loaded(plan.tunings[0].asked), screen)
    for one in plan.tunings:
        space = ", ".join(f"{path}={axis}" for path, axis in one.space.items())
        trials = f"{one.budget.trials} trials of {one.asked.rounds} rounds"
        screen.print(f"{one.name}: {trials} over {space}", highlight=False, markup=False, soft_wrap=True)
    carry(plan, loaded, screen)


def planned(targets: list[str], options: TuneOptions, loaded: Validated) -> Plan:
    """Return what these options ask for."""
    require(
        not options.resume or options.out is not None,
        "--resume needs the folder of the tuning: give it with --out, or in place of the methods.",
    )
    experiments, seeds, rest = read_experiments(targets, options.of_run())
    require(rest.splits in (None, 1), "Methods are tuned on one split of the samples; take 'splits' out of the file.")
    if len(experiments) > 1 and not any(is_local(one.method.name) for one in experiments):
        alone = tunable_locals([one.method for one in experiments])
        alone = [method for method in alone if not options.grid or read_space(method, options.space or [])]
        experiments = [*(replace(experiments[0], method=method) for method in alone), *experiments]
    both = options.grid and options.trials is not None
    require(not both, "A grid has as many trials as there are combinations; leave --trials out.")
    budget = Budget(
        20 if options.trials is None else options.trials,
        options.prune,
        options.grid,
        options.average or "macro",
        options.search_seed or 0,
    )
    folder: Path | Callable[[], Path] = options.out or fresh_folder("tune", experiments[0])
    return plan_for(
        experiments,
        seeds,
        options.space or [],
        budget,
        folder,
        loaded,
        resume=options.resume,
        jobs=read_jobs(options.jobs, budget.trials, experiments[0].device) or 1,
    )


def resumed(folder: Path, options: TuneOptions, loaded: Validated) -> Plan:
    """Return what a folder set out to tune; only the number of trials and of processes may be another one."""
    free = ("trials", "jobs", "out", "resume", "trust", "verify")
    said = [
        entry.name.replace("_", "-")
        for entry in fields(TuneOptions)
        if entry.name not in free and getattr(options, entry.name) != entry.default
    ]
    fixed = f"{folder} says itself what it tunes; leave --{', --'.join(said)} out, or give the methods and --out."
    require(not said, fixed)
    plan = stored_plan(folder, loaded, trials=options.trials)
    first = plan.tunings[0]
    return replace(plan, jobs=read_jobs(options.jobs, first.budget.trials, first.asked.device) or plan.jobs)


def carry(plan: Plan, loaded: Validated, screen: Console) -> None:
    """Tune with a progress display, and show what came out."""
    go_on = going_on("tune", plan.folder, (one.asked for one in plan.tunings))
    with Progress(screen, []) as progress:
        shown = TrialProgress(progress, {one.name: one.budget.trials for one in plan.tunings})
        try:
            found = carry_out(
                plan, loaded, watching=shown.watching, warn=progress.warn, stopping=lambda: progress.stopping
            )
        except Killed as error:
            raise Unfinished(f"{error} {go_on}") from None
    if found is None:
        screen.print(f"Stopped and saved. {go_on}", highlight=False, soft_wrap=True)
        raise typer.Exit(progress.code)
    for tuned in found:
        plain_console(width=max(plain_console().width, 100)).print(table(tuned))
    files = plan.comparison if len(found) > 1 else plan.best(found[0].method.name)
    command = "compare" if len(found) > 1 else "run"
    screen.print(f"The best settings are in {plan.folder}; next: fedkin {command} {files}", soft_wrap=True)


def table(tuned: Tuned) -> Table:
    """Return the trials of a method, the best first."""
    note = tuned.note
    metric = METRICS[note["metric"]]
    ended = ", ".join(f"{note[word]} {word.replace('_', ' ')}" for word in ("given_up", "failed") if note[word])
    title = f"{tuned.method.name}: {note['trials']} trials of {note['rounds']} rounds" + (f", {ended}" if ended else "")
    column = f"validation {metric.label} ({note['kind']}, {note['average']})"
    found = Table("trial", *note["space"], column, "state", title=title, title_justify="left", box=SIMPLE_HEAD)
    for one in tuned.tried[:SHOWN]:
        value = "-" if one.value is None else f"{100 * one.value:.2f} %" if metric.percent else f"{one.value:.4f}"
        state = f"{one.state}, round {one.round}" if one.state == "given up" else one.state
        state += f" ({one.why})" if one.why else ""
        found.add_row(str(one.number), *(one.settings.get(path, "") for path in note["space"]), value, state)
    if len(tuned.tried) > SHOWN:
        found.caption = f"and {len(tuned.tried) - SHOWN} more"
    return found
