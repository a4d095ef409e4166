"""What a command sets out to do: which experiments with which seeds, in which folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedkin.data import Data, load
from fedkin.data.federation import Federation
from fedkin.errors import require
from fedkin.methods.local import alone, matched
from fedkin.parts import Method
from fedkin.round import begin
from fedkin.runs.experiment import Experiment
from fedkin.runs.folder import CommandFolder, RunFolder
from fedkin.runs.resume import check_rounds, check_same
from fedkin.runs.run import Run
from fedkin.runs.setup import cores, set_up
from fedkin.runs.verdict import LOCAL, MATCHED


@dataclass(frozen=True)
class Planned:
    """A run that is to be played: one method with one seed, and its folder."""

    experiment: Experiment
    folder: RunFolder

    @property
    def run(self) -> Run:
        """The run as it lies in the folder now."""
        return Run(self.folder.path, asked=self.experiment.rounds)

    @property
    def done(self) -> bool:
        """Whether the run is finished, with as many rounds as are asked for now."""
        return self.run.finished

    @property
    def name(self) -> str:
        return f"{self.experiment.method.name} seed {self.experiment.seed}"


@dataclass(frozen=True)
class Plan:
    """The runs of a command, how many of them are played side by side, and for which preset."""

    folder: CommandFolder
    runs: list[Planned]
    jobs: int = 1
    preset: str | None = None

    @property
    def methods(self) -> list[Method]:
        """The methods of the plan, each once."""
        return list({one.experiment.method.name: one.experiment.method for one in self.runs}.values())

    def write(self) -> None:
        """Write the plan before anything runs, so that `--resume FOLDER` needs no other word."""
        arms = [one.experiment.described() for one in self.runs]
        self.folder.write_plan({"arms": arms, "jobs": self.jobs, "preset": self.preset})


class Loaded:
    """The federation of an experiment, loaded when it is first asked for; the last one is kept for the next run."""

    def __init__(self) -> None:
        self.data: Data | None = None
        self.federation: Federation | None = None

    def __call__(self, experiment: Experiment) -> Federation:
        if isinstance(experiment.data, Federation):
            return experiment.data
        if self.federation is None or experiment.data != self.data:
            self.data, self.federation = experiment.data, load(experiment.data)
        return self.federation


def runs_for(experiments: Sequence[Experiment], seeds: Sequence[int], folder: CommandFolder) -> list[Planned]:
    """Return a planned run for each of these experiments, named by its method, with each of these seeds."""
    names = [experiment.method.name for experiment in experiments]
    require(len(set(names)) == len(names), f"Two methods of one comparison have the same name: {', '.join(names)}.")
    return [
        Planned(replace(experiment, seed=seed), folder.run(experiment.method.name, seed))
        for experiment in experiments
        for seed in seeds
    ]


def with_local(methods: Sequence[Method]) -> list[Method]:
    """Return the methods with Local in front, which trains with the steps and the rate of the first of them.

    A matched Local follows the first method too.
    """
    require(methods, "A comparison needs at least one method.")
    first = next((method for method in methods if method.name not in (LOCAL, MATCHED)), methods[0])
    followed = [matched(first) if method.name == MATCHED else method for method in methods]
    return followed if any(method.name == LOCAL for method in methods) else [alone(first), *followed]


def checked_seeds(seeds: object) -> list[int]:
    """Return the seeds: a number of them (3 means 0, 1, 2), or a list of different whole numbers from 0."""
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        require(seeds >= 1, f"--seeds must be at least 1, not {seeds}.")
        return list(range(seeds))
    several = list(seeds) if isinstance(seeds, list | tuple | range) else []
    whole = bool(several) and all(isinstance(n, int) and not isinstance(n, bool) for n in several)
    require(
        whole and min(several) >= 0 and len(set(several)) == len(several),
        f"Seeds are a number of them, or a list of different whole numbers from 0, not {seeds!r}.",
    )
    return several


def settled(experiments: Sequence[Experiment], loaded: Loaded, jobs: int) -> list[Experiment]:
    """Return the experiments with everything chosen that they leave open, and refuse what cannot work.

    All get one cadence of scoring, so that the best round of one method is not chosen from more rounds than that of
    another. Each of `jobs` processes gets its share of the cores.
    """
    setups = [set_up(experiment, loaded(experiment)) for experiment in experiments]
    for experiment, setup in zip(experiments, setups, strict=True):
        begin(experiment.method, setup.task)
    every, most = max(setup.evaluate_every for setup in setups), max(1, cores() // jobs)
    return [
        replace(
            experiment,
            evaluate_every=experiment.evaluate_every or every,
            threads=experiment.threads or min(setup.threads, most),
        )
        for experiment, setup in zip(experiments, setups, strict=True)
    ]


def read_plan(folder: Path) -> dict[str, Any]:
    """Return what the runs in a folder set out to do, as JSON."""
    place = CommandFolder(folder)
    require(folder.is_dir(), f"There is no folder {folder} to resume; run without --resume to begin there.")
    require(place.has_plan, f"{folder} is not a run of fedkin (it has no plan.json) to be resumed.")
    return place.plan()


def stored_plan(folder: Path) -> Plan:
    """Return the plan of a folder. Data and modules that were handed over in Python cannot be found again."""
    plan, place = read_plan(folder), CommandFolder(folder)
    experiments = [Experiment.from_json(value) for value in plan["arms"]]
    runs = [Planned(e, place.run(e.method.name, e.seed)) for e in experiments]
    return Plan(place, runs, plan.get("jobs", 1), plan.get("preset"))


def check_agreement(folder: Path, stored: list[dict[str, Any]], asked: list[Planned]) -> None:
    """Refuse runs that a folder did not set out to do; only their number of rounds may be larger.

    `stored` are the experiments of its plan, as JSON.
    """
    there = {(value["method"]["name"], value["seed"]): value for value in map(with_new_fields, stored)}
    here = {(one.experiment.method.name, one.experiment.seed): one.experiment for one in asked}
    names = [", ".join(f"{name} seed {seed}" for name, seed in runs) for runs in (there, here)]
    require(there.keys() == here.keys(), f"{folder} holds {names[0]}, not {names[1]}; choose another --out.")
    for key, experiment in here.items():
        check_same(there[key], experiment, f"{folder} holds another experiment", "choose another --out.")
        check_rounds(folder, there[key]["rounds"], experiment)


def with_new_fields(value: dict[str, Any]) -> dict[str, Any]:
    """Return a stored experiment with the defaults of fields that an older version did not know."""
    given = "given" in value["data"] or str(value["model"]).startswith("given: ")
    return value if given else Experiment.from_json(value).described()
