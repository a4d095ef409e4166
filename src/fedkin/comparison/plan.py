"""What a command sets out to do: which experiments with which seeds, in which folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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


def planned(experiments: Sequence[Experiment], seeds: Sequence[int], folder: CommandFolder) -> list[Planned]:
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
    first = next((method for method in methods if method.name not in (LOCAL, MATCHED)), methods[0])
    followed = [matched(first) if method.name == MATCHED else method for method in methods]
    return followed if any(method.name == LOCAL for method in methods) else [alone(first), *followed]


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


def stored_plan(folder: Path) -> Plan:
    """Read what the runs in a folder set out to do, as they wrote it down when they began."""
    place = CommandFolder(folder)
    require(folder.is_dir(), f"There is no folder {folder} to resume; run without --resume to begin there.")
    require(place.planned, f"{folder} is not a run of fedkin (it has no plan.json) to be resumed.")
    plan = place.plan()
    experiments = [Experiment.from_json(value) for value in plan["arms"]]
    runs = [Planned(e, place.run(e.method.name, e.seed)) for e in experiments]
    return Plan(place, runs, plan.get("jobs", 1), plan.get("preset"))


def check_agreement(stored: Plan, asked: list[Planned]) -> None:
    """Refuse runs that the folder did not set out to do; only their number of rounds may be larger."""
    there, here = (
        {(one.experiment.method.name, one.experiment.seed): one.experiment for one in runs}
        for runs in (stored.runs, asked)
    )
    folder = stored.folder.path
    names = [", ".join(f"{name} seed {seed}" for name, seed in runs) for runs in (there, here)]
    require(there.keys() == here.keys(), f"{folder} holds {names[0]}, not {names[1]}; choose another --out.")
    for key, experiment in here.items():
        old = there[key]
        check_same(old.described(), experiment, f"{folder} holds another experiment", "choose another --out.")
        check_rounds(folder, old.rounds, experiment)
