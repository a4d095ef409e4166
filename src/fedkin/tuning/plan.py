"""What a tuning set out to do, in a folder of its own.

tuning.json               the methods, their spaces, the budget
<method>/study.db         the trials of a method, Optuna's file
<method>/trial-<k>/       the runs of a trial, only while it is played
<method>.toml             the method with its best settings, for fedkin run and fedkin compare
comparison.toml           all methods with their best settings, where there are several
.lock
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fedkin.comparison.plan import check_side_by_side, settled, with_local
from fedkin.errors import BadInput, require
from fedkin.imports import named_in
from fedkin.parts import Method, Train
from fedkin.privacy import unprotected
from fedkin.runs import files
from fedkin.runs.experiment import Experiment
from fedkin.runs.format import check_format, write_format
from fedkin.runs.resume import difference
from fedkin.runs.validation import SHARE, Aim, aim_of, with_validation
from fedkin.runs.verdict import is_local, without_rate
from fedkin.tuning.budget import Budget
from fedkin.tuning.loaded import Validated
from fedkin.tuning.space import Space, check_used, default_space, grid_size, read_space

PLAN = "tuning.json"


@dataclass(frozen=True)
class Tuning:
    """What is to be tuned: one method with its space. `asked` is the experiment without what was chosen for trials."""

    asked: Experiment
    experiment: Experiment  # with the cadence and the threads of its trials
    space: Space
    aim: Aim
    budget: Budget

    @property
    def name(self) -> str:
        return self.asked.method.name

    @property
    def method(self) -> Method:
        """The method whose fields the space names."""
        return known_method(self.asked)


@dataclass(frozen=True)
class Plan:
    """The methods that are tuned, all on the same data, with the same seeds."""

    folder: Path
    tunings: tuple[Tuning, ...]
    seeds: tuple[int, ...]
    jobs: int = 1

    def described(self) -> dict[str, Any]:
        """Return the plan as JSON."""
        return {
            "methods": [
                {
                    "experiment": one.asked.described(),
                    "evaluate_every": one.experiment.evaluate_every,
                    "threads": one.experiment.threads,
                    "space": {path: str(axis) for path, axis in one.space.items()},
                    "budget": asdict(one.budget),
                }
                for one in self.tunings
            ],
            "seeds": list(self.seeds),
            "jobs": self.jobs,
        }

    def write(self) -> None:
        files.write_json(self.folder / PLAN, self.described())  # first: without it nothing could go on
        write_format(self.folder)

    def study(self, name: str) -> Path:
        """Return the folder of a method's trials."""
        return self.folder / name

    def best(self, name: str) -> Path:
        """Return the file of a method with its best settings."""
        return self.folder / f"{name}.toml"

    @property
    def comparison(self) -> Path:
        return self.folder / "comparison.toml"


def plan_for(
    experiments: Sequence[Experiment],
    seeds: Sequence[int],
    asked: Sequence[str] | dict[str, object],
    budget: Budget,
    folder: Path | Callable[[], Path],
    loaded: Validated,
    *,
    validation: float = SHARE,
    resume: bool = False,
    jobs: int = 1,
) -> Plan:
    """Check everything that can be checked before a trial, and return the plan.

    `folder` may be a function that makes a new one; it is called only when nothing is wrong.
    """
    if isinstance(folder, Path):
        sentence = f"{folder} exists already; choose another --out, or add --resume to go on with it."
        require(resume or not files.holds_something(folder), sentence)
    names = [experiment.method.name for experiment in experiments]
    require(len(set(names)) == len(names), f"Two methods have the same name: {', '.join(names)}.")
    check_used([known_method(experiment) for experiment in experiments], asked)
    check_side_by_side(experiments, jobs, None)
    experiments = [with_validation(experiment, validation) for experiment in experiments]
    spaces = [space_of(known_method(experiment), asked) for experiment in experiments]
    aims = [aim_of(experiment, loaded(experiment), budget.average) for experiment in experiments]
    played = settled([replace(e, score=(aim.kind,)) for e, aim in zip(experiments, aims, strict=True)], loaded, jobs)
    tunings = tuple(
        Tuning(
            asked_for,
            replace(asked_for, evaluate_every=chosen.evaluate_every, threads=chosen.threads),
            space,
            aim,
            replace(budget, trials=grid_size(space)) if budget.grid else budget,
        )
        for asked_for, chosen, space, aim in zip(experiments, played, spaces, aims, strict=True)
    )
    plan = Plan(folder if isinstance(folder, Path) else folder(), tunings, tuple(seeds), jobs)
    return agreed(plan) if resume and (plan.folder / PLAN).exists() else plan


def known_method(experiment: Experiment) -> Method:
    """Return the method of an experiment as its user knows it: without what --dp changes in it, which an experiment
    does by itself."""
    return experiment.method if experiment.dp is None else unprotected(experiment.method)


def tunable_locals(methods: Sequence[Method]) -> list[Method]:
    """Return a Local for each budget of steps that these methods have; tuning finds the rate of each."""
    found: dict[Train, Method] = {}
    for method in with_local(methods):
        if is_local(method.name):
            name = "@".join(word for word in method.name.split("@") if not word.startswith("eta="))
            found.setdefault(without_rate(method.train), replace(method, name=name))
    return list(found.values())


def space_of(method: Method, asked: Sequence[str] | dict[str, object]) -> Space:
    """Return the space of a method: what is asked for of its fields or, if that is nothing, its own default."""
    found = read_space(method, asked) or default_space(method)
    require(found, f"{method.name} has no number to tune; say which fields with --space, as in train.eta=0.01,0.1.")
    return found


def agreed(plan: Plan) -> Plan:
    """Return the plan with what was chosen when its folder was begun; one that asks for something else is refused.

    The number of trials may be another one.
    """
    stored = read_plan(plan.folder)
    then, now = comparable(stored), comparable(plan.described())
    found = difference(then, now, "")
    if found:
        path, old, new = found
        raise BadInput(
            f"{plan.folder} tunes something else ({path.lstrip('.')} is {old!r} there and {new!r} here); choose "
            "another --out."
        )
    tunings = [
        replace(one, experiment=replace(one.asked, evaluate_every=of["evaluate_every"], threads=of["threads"]))
        for one, of in zip(plan.tunings, stored["methods"], strict=True)
    ]
    return replace(plan, tunings=tuple(tunings))


def comparable(plan: dict[str, Any]) -> dict[str, Any]:
    """Return what makes a plan what it is, by method."""
    methods = {
        one["experiment"]["method"]["name"]: {
            "experiment": {name: value for name, value in one["experiment"].items() if name != "threads"},
            "space": one["space"],
            "budget": {name: value for name, value in one["budget"].items() if name != "trials"},
        }
        for one in plan["methods"]
    }
    return {"methods": methods, "seeds": plan["seeds"]}


def read_plan(folder: Path) -> dict[str, Any]:
    """Return what a folder set out to tune, as JSON."""
    require(folder.is_dir(), f"There is no folder {folder} to go on with.")
    require((folder / PLAN).exists(), f"{folder} is no tuning of fedkin (it has no {PLAN}).")
    check_format(folder)
    stored = files.read_json(folder / PLAN)
    whole = isinstance(stored, dict) and isinstance(stored.get("methods"), list) and stored["methods"]
    require(whole, f"{folder / PLAN} is damaged; begin anew elsewhere.")
    return dict(stored)


def stored_plan(folder: Path, loaded: Validated, *, trials: int | None = None, jobs: int | None = None) -> Plan:
    """Return the plan of a folder, with another number of trials or of processes if they are given."""
    stored = read_plan(folder)
    tunings = []
    for one in stored["methods"]:
        with named_in(folder):
            asked = Experiment.from_json(one["experiment"])
        budget = Budget(**one["budget"])
        budget = replace(budget, trials=trials) if trials is not None and not budget.grid else budget
        chosen = replace(asked, evaluate_every=one["evaluate_every"], threads=one["threads"])
        space = read_space(known_method(asked), one["space"])
        tunings.append(Tuning(asked, chosen, space, aim_of(asked, loaded(asked), budget.average), budget))
    return Plan(folder, tuple(tunings), tuple(stored["seeds"]), jobs or stored.get("jobs", 1))
