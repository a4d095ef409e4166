"""Plans a comparison, carries it out and writes what came out: `fk.compare`, and what the commands do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from fedkin.answers.answer import answers, silent
from fedkin.answers.audit import Opinions, Telling, audited, of_methods
from fedkin.comparison.arms import read_arms
from fedkin.comparison.conclusions import against_local, leader, pairs
from fedkin.comparison.divisions import data_seed_of, split_of
from fedkin.comparison.experiment_files import like_files
from fedkin.comparison.jobs import play_side_by_side
from fedkin.comparison.plan import (
    Loaded,
    Plan,
    check_agreement,
    check_side_by_side,
    check_tests,
    checked_data_seeds,
    checked_seeds,
    checked_splits,
    read_plan,
    runs_for,
    scored_every_round,
    settled,
    with_local,
    without_answers,
)
from fedkin.comparison.result import Comparison, Repetitions, Runs, Temporary, over_seeds
from fedkin.comparison.sequence import Watching, mend, nobody, once, told
from fedkin.comparison.tuned import Notes, notes_of, tuned_cautions, tuned_sentences
from fedkin.data import Data
from fedkin.data.federation import Federation
from fedkin.engines.cluster.connection import HERE
from fedkin.errors import BadInput, require
from fedkin.evaluate import wanted_kinds
from fedkin.metrics import deciding as deciding_metric
from fedkin.parts import Method
from fedkin.runs import files
from fedkin.runs.callback import Callback
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.experiment import Experiment
from fedkin.runs.imbalance import one_sided
from fedkin.runs.resume import as_begun
from fedkin.runs.run import Run
from fedkin.runs.setup import actors_for, cores, set_up
from fedkin.runs.targets import checked_targets, outcomes
from fedkin.runs.verdict import LOCAL, MATCHED, mixed, unequal_participation, uneven


def compare(
    methods: Sequence[Method | str],
    data: Data | Federation | str | None = None,
    model: str | nn.Module | None = None,
    rounds: int | None = None,
    *,
    seeds: int | Sequence[int] | None = None,
    splits: int | None = None,
    data_seeds: int | None = None,
    folder: Path | str | None = None,
    resume: bool = False,
    jobs: int | str = 1,
    evaluate_every: int | None = None,
    score: Sequence[str] | None = None,
    targets: Sequence[str | float] | None = None,
    metric: str | None = None,
    class_weights: str | None = None,
    score_clients: int | None = None,
    dp: str | None = None,
    memory: float | str | None = None,
    engine: str | None = None,
    actors: int | None = None,
    ray_address: str | None = None,
    threads: int | None = None,
    device: str | None = None,
    callbacks: Sequence[Callback] = (),
    warn: Callable[[str], None] = print,
) -> Comparison:
    """Run several methods on the same data, clients and batches, always with Local, training alone, beside them.

    `methods` are methods, or what the command takes: names, files, import paths, with settings and sweeps after an @
    ("fedprox@train.lam=0.1,1,10"). `seeds` is how many seeds (3 means 0, 1, 2), or which. `splits` is how many
    divisions into train and test every method is run on, the same for all, and `data_seeds` how many seeds of the data
    (`Data.seed` and those after it), each of which is another partition; one seed then goes along. `targets`
    are values to be reached, 0.9 or "fedavg+0.01" (`Comparison.targets` says when); every round is scored then.

    With a folder the runs are recorded there, and `resume=True` goes on with what lies in it; without one they lie in a
    temporary folder that goes with the comparison. `jobs` runs are played side by side, each in a process of its own; a
    script that asks for several must be guarded by `if __name__ == "__main__":`. With jobs="ray" they are played on the
    cluster at `ray_address`, or on a Ray that is started here. `callbacks` are told of every round of
    every run. The other parameters are those of `Experiment`; what is not said is as a file among the methods says, or
    as it is there.

        found = fk.compare(["fedavg", "fedmcsa"], fk.Data("digits", clients=10), rounds=20, seeds=3)
        print(found.table())
        found.verdicts["fedmcsa"]["verdict"]
    """
    listed = isinstance(methods, list | tuple) and all(isinstance(method, Method | str) for method in methods)
    require(listed, f"A comparison takes a list of methods or their names, not {methods!r}.")
    require(methods, "A comparison needs at least one method.")
    chosen = read_arms(methods)
    whole = isinstance(jobs, int) and not isinstance(jobs, bool) and jobs >= 1
    require(whole or jobs == "ray", f"jobs is a number of processes from 1, or 'ray', not {jobs!r}.")
    cluster = ray_address or HERE if jobs == "ray" else None
    require(folder is not None or not resume, "Resuming needs the folder of the comparison.")
    said: dict[str, Any] = {"model": model, "rounds": rounds, "engine": engine, "threads": threads, "device": device}
    said |= {"evaluate_every": evaluate_every, "score": None if score is None else tuple(score)}
    said |= {"metric": metric, "class_weights": class_weights, "score_clients": score_clients, "memory": memory}
    said |= {"dp": dp, "actors": actors, "ray_address": None if cluster else ray_address}
    said |= {"data": Data(data) if isinstance(data, str) else data}
    like, repeated = like_files(methods, chosen[0], {name: value for name, value in said.items() if value is not None})
    several = checked_seeds(repeated["seeds"] if seeds is None else seeds)
    divisions = checked_splits(repeated["splits"] if splits is None else splits)
    partitions = checked_data_seeds(repeated["data_seeds"] if data_seeds is None else data_seeds)
    goals = repeated["targets"] if targets is None else targets
    notes = notes_of(methods, [replace(like, method=method) for method in chosen])
    chosen = with_local(chosen, notes)
    temporary = Temporary() if folder is None else None
    place = Path(folder or "") if temporary is None else temporary.path
    loaded = Loaded()
    plan = plan_for(
        [replace(like, method=method) for method in chosen],
        several,
        place,
        loaded,
        resume,
        None if cluster else int(jobs),
        splits=divisions,
        data_seeds=partitions,
        targets=goals,
        tuned=notes,
        cluster=cluster,
    )
    watching = told(callbacks) if callbacks else nobody
    found = carry_out(plan, loaded, resume=resume, watching=watching, warn=warn, temporary=temporary)
    if found is None:
        where = "it had no folder to go on in" if temporary else f"go on with folder={str(place)!r} and resume=True"
        raise BadInput(f"A callback stopped the comparison; {where}.")
    return found


def plan_for(
    experiments: Sequence[Experiment],
    seeds: Sequence[int],
    folder: Path | Callable[[], Path],
    loaded: Loaded,
    resume: bool = False,
    jobs: int | None = None,
    splits: int = 1,
    data_seeds: int = 1,
    targets: Sequence[str | float] = (),
    tuned: Notes | None = None,
    cluster: str | None = None,
) -> Plan:
    """Check everything that can be checked before a run, and return the plan. `tuned` is how its methods were tuned.

    `folder` may be a function that makes a new one; it is called only when nothing is wrong. Without `jobs` it is as
    many as the folder's plan says, or one. With `cluster` the runs are played there, each on one core.
    """
    if isinstance(folder, Path):
        sentence = f"{folder} exists already; choose another --out, or add --resume to go on with it."
        require(resume or not files.holds_something(folder), sentence)
    stored = read_plan(folder) if resume and isinstance(folder, Path) else None
    number = jobs or (stored.get("jobs", 1) if stored else 1)
    cluster = cluster or (stored.get("cluster") if stored and jobs is None else None)
    check_side_by_side(experiments, number, cluster)
    federation = loaded(experiments[0])
    if len(experiments) > 1:
        check_tests(federation)
    wanted: Sequence[str | float] = targets or (stored or {}).get("targets", ())
    metric = deciding_metric(experiments[0].metric, federation.task)
    common = federation.common is not None
    kinds = {one.method.name: wanted_kinds(one.method, one.score, common) for one in experiments} if wanted else {}
    values = checked_targets(wanted, kinds, metric)
    if stored:  # what was chosen then holds
        then = {value["method"]["name"]: value for value in stored["arms"]}
        experiments = [as_begun(one, then.get(one.method.name, {})) for one in experiments]
    experiments = scored_every_round(experiments) if values else list(experiments)
    at_once = cores() if cluster else min(number, len(experiments) * len(seeds) * splits * data_seeds)
    experiments = settled(experiments, loaded, at_once)
    if stored and isinstance(folder, Path):
        asked = runs_for(experiments, seeds, CommandFolder(folder), splits, data_seeds)
        check_agreement(folder, stored["arms"], asked)
    runs_for(experiments, seeds, CommandFolder(Path()), splits, data_seeds)  # refuses before a folder is made
    place = CommandFolder(folder if isinstance(folder, Path) else folder())
    return Plan(place, runs_for(experiments, seeds, place, splits, data_seeds), number, tuned or {}, values, cluster)


def carry_out(
    plan: Plan,
    loaded: Loaded,
    *,
    resume: bool = False,
    watching: Watching = nobody,
    warn: Callable[[str], None] = print,
    stopping: Callable[[], bool] = lambda: False,
    temporary: Temporary | None = None,
    telling: Telling = silent,
) -> Comparison | None:
    """Play a plan to its end and summarise it; returns None if it was stopped on the way."""
    path, warn = plan.folder.path, once(warn)
    files.make_folder(path)
    with files.locked(path):
        new = resume or not plan.folder.has_plan
        require(new, f"Another command was at work in {path} just now; choose another --out, or add --resume.")
        plan.write()
        mend(plan.runs, warn)
        for sentence in [*warnings(plan), *cautions(plan, loaded), *without_answers(plan)]:
            warn(sentence)
        options: dict[str, Any] = {"resume": resume, "watching": watching, "warn": warn, "stopping": stopping}
        with actors_for([one.experiment for one in plan.runs if not one.done]):
            done = play_side_by_side(plan.runs, plan.jobs, loaded, cluster=plan.cluster, **options)
        return concluded(plan, temporary, telling, loaded) if done else None


def warnings(plan: Plan) -> list[str]:
    """Return what makes the methods of a plan hard to compare."""
    splits = len({(split_of(one.experiment), data_seed_of(one.experiment)) for one in plan.runs})
    return [*uneven(plan.methods, plan.tuned), *tuned_cautions(plan.tuned, splits)]


def cautions(plan: Plan, loaded: Loaded) -> list[str]:
    """Return what a user should know of the methods before the first run; nothing where all runs are done."""
    first: dict[str, Experiment] = {}
    for one in plan.runs:
        if not one.done:
            first.setdefault(one.experiment.method.name, one.experiment)
    setups = {name: set_up(experiment, loaded(experiment)) for name, experiment in first.items()}
    return [sentence for name, one in first.items() for sentence in one.method.cautions(setups[name].task)]


def opinions_on(plan: Plan, runs: Runs, loaded: Loaded | None, telling: Telling) -> Opinions | None:
    """Ask filters about every site: those of the compared methods and, where the data are at hand, an audit."""
    own = of_methods({name: list(found.values()) for name, found in runs.items()})
    local = next((one.experiment for one in plan.runs if one.experiment.method.name == LOCAL), None)
    if loaded is None or local is None:
        return None
    run = next(iter(runs[LOCAL].values()))
    found = audited(local, run, loaded(local), telling)
    return None if found is None else replace(found, left_out=found.left_out | own)


def concluded(
    plan: Plan, temporary: Temporary | None = None, telling: Telling = silent, loaded: Loaded | None = None
) -> Comparison:
    """Write the summaries above the runs: of each method over its seeds and splits, and of all methods."""
    runs: Runs = {}
    for one in plan.runs:
        asked = one.experiment
        run = Run(one.folder.path, asked.rounds, asked.seed, temporary=temporary, metric=asked.metric)
        runs.setdefault(one.experiment.method.name, Repetitions())[run.repetition] = run
    methods = over_seeds(runs)
    for name, found in methods.items():
        plan.folder.write_summary(found, name)
    if len(methods) == 1:
        summary: dict[str, Any] = next(iter(methods.values()))
    else:
        against, each = against_local(runs, plan.methods, plan.tuned), pairs(runs)
        first, silent_on = first_of(next(iter(runs.values()))), without_answers(plan)
        said = [*warnings(plan), *unequal_participation(against), *mixed(against), *flattered(first), *silent_on]
        summary = {"metric": first.metric, "methods": methods, "against_local": against, "cautions": said}
        summary |= {"pairs": each, "leader": leader(each)}
        alone = {name for name in runs if name == MATCHED or first_of(runs[name]).pools}  # nobody to join
        private = {name: one["against"] for name, one in against.items() if name not in alone}
        if private and not silent_on:
            sites = answers(runs, private, telling, opinions_on(plan, runs, loaded, telling))
            summary |= {"sites": sites} if sites else {}
    if plan.targets:
        rows = {name: list(found.values()) for name, found in runs.items()}
        summary = summary | {"targets": outcomes(plan.targets, rows)}
    if plan.tuned:
        summary = summary | {"tuned": {"sentences": tuned_sentences(list(methods), plan.tuned), "methods": plan.tuned}}
    plan.folder.write_summary(summary)
    return Comparison(plan.folder.path, runs, methods, summary, temporary)


def first_of(runs: Repetitions) -> Run:
    """Return the first run of a method."""
    return next(iter(runs.values()))


def flattered(run: Run) -> list[str]:
    """Return a sentence if accuracy decides and flatters, because one class outweighs the others."""
    about = run.about_clients
    return one_sided(np.array(about.get("labels", [])), about["names"], run.labels, run.experiment.get("metric"))
