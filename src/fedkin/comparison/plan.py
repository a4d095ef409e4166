"""What a command sets out to do: which experiments with which seeds, in which folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fedkin.comparison.divisions import data_seed_of, divisions, split_of
from fedkin.data import Data, load
from fedkin.data.federation import Federation
from fedkin.engines import ACTORS
from fedkin.engines.cluster.connection import check_cluster
from fedkin.errors import BadInput, require
from fedkin.imports import named_in
from fedkin.methods.local import alone, local, matched
from fedkin.parts import Method, Train
from fedkin.round import begin
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.experiment import Experiment
from fedkin.runs.folder import RunFolder
from fedkin.runs.memory import check_together
from fedkin.runs.resume import check_rounds, check_same
from fedkin.runs.run import Run
from fedkin.runs.setup import cores, set_up
from fedkin.runs.verdict import LOCAL, MATCHED, compared_with, is_local, met_by_tuned


@dataclass(frozen=True)
class Planned:
    """A run that is to be played: one method with one seed, and its folder."""

    experiment: Experiment
    folder: RunFolder
    label: str | None = None  # what a progress display calls the run, if not by its method and seed
    profile: bool = False  # whether the run is to say where its time goes

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
        if self.label is not None:
            return self.label
        at = self.experiment
        split, data_seed = split_of(at), data_seed_of(at)
        name = f"{at.method.name} seed {at.seed}" + (f" split {split}" if split else "")
        return name + (f" data seed {data_seed}" if data_seed else "")


@dataclass(frozen=True)
class Plan:
    """The runs of a command, and how many of them are played side by side."""

    folder: CommandFolder
    runs: list[Planned]
    jobs: int = 1
    tuned: dict[str, dict[str, Any]] = field(default_factory=dict)  # by method: how it was tuned
    targets: tuple[str, ...] = ()  # values to be reached, as `runs.targets` reads them
    cluster: str | None = None  # the address of the Ray cluster that the runs are played on; None: in processes

    @property
    def methods(self) -> list[Method]:
        """The methods of the plan, each once."""
        return list({one.experiment.method.name: one.experiment.method for one in self.runs}.values())

    def write(self) -> None:
        """Write the plan before anything runs, so that `--resume FOLDER` needs no other word."""
        arms = [one.experiment.described() for one in self.runs]
        against = compared_with(self.methods, self.tuned)
        stored: dict[str, Any] = {"arms": arms, "jobs": self.jobs, "against": against}
        stored |= {"tuned": self.tuned} if self.tuned else {}
        stored |= {"cluster": self.cluster} if self.cluster else {}
        self.folder.write_plan(stored | ({"targets": list(self.targets)} if self.targets else {}))


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


def runs_for(
    experiments: Sequence[Experiment], seeds: Sequence[int], folder: CommandFolder, splits: int = 1, data_seeds: int = 1
) -> list[Planned]:
    """Return a planned run for each of these experiments, named by its method, with each of these seeds, on as many
    splits and with as many seeds of the data. All runs on the same data come together, so that they are loaded once.

    One seed goes along with that of the data, so that nothing is the same in two repetitions.
    """
    names = [experiment.method.name for experiment in experiments]
    require(len(set(names)) == len(names), f"Two methods of one comparison have the same name: {', '.join(names)}.")
    return [
        Planned(
            replace(experiment, seed=seed, data=experiment.data if on.data is None else on.data),
            folder.run(experiment.method.name, seed, on.split, on.data_seed),
        )
        for on in divisions(experiments[0], splits, data_seeds)
        for experiment in experiments
        for seed in ([seeds[0] + on.place] if len(seeds) == 1 else seeds)
    ]


def with_local(methods: Sequence[Method], tuned: Collection[str] = ()) -> list[Method]:
    """Return the methods with a Local for each of their budgets in front: as many steps a round at the same rate.

    'local' has the budget that most methods have, whatever their order; any other is named by how it differs. A Local
    among the methods whose fields were changed stays as it is. A matched Local follows the first method. Where Local
    was tuned, methods that were tuned too need no Local at their own rate.
    """
    require(methods, "A comparison needs at least one method.")
    first = next((method for method in methods if method.name not in (LOCAL, MATCHED)), methods[0])
    others = [matched(first) if method.name == MATCHED else method for method in methods]
    if first.name == LOCAL:
        return list(others)
    given = [method for method in others if is_local(method.name) and (method != local() or method.name in tuned)]
    others = [method for method in others if not is_local(method.name)]
    budgets = Counter(alone(method).train for method in others)
    plain = next((method for method in given if method.name == LOCAL), None)
    if plain is None:
        most = min(budgets, key=lambda train: (-budgets[train], train != local().train, repr(train)))
        plain = replace(local(), train=most)
    there = [plain, *(method for method in given if method.name != LOCAL)]
    met = {alone(method).train for method in others if any(met_by_tuned(method, other, tuned) for other in there)}
    missing = sorted(set(budgets) - {method.train for method in there} - met, key=repr)
    there += [replace(plain, name=f"{LOCAL}@{differences(train, plain.train)}", train=train) for train in missing]
    return [*there, *others]


def differences(train: Train, plain: Train) -> str:
    """Return how a client's training differs from another one's, as an arm says it: 'epochs=1@eta=0.05'."""
    other = plain.values()
    changed = {name: value for name, value in train.values().items() if value != other.get(name) and value is not None}
    return "@".join(f"{name}={value}" for name, value in sorted(changed.items()))


def checked_seeds(seeds: object) -> list[int]:
    """Return the seeds: a number of them (3 means 0, 1, 2), or a list of different whole numbers from 0."""
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        require(1 <= seeds <= MANY, f"--seeds must be at least 1 and at most {MANY:,}, not {seeds}.")
        return list(range(seeds))
    several = list(seeds) if isinstance(seeds, list | tuple | range) else []
    whole = bool(several) and all(isinstance(n, int) and not isinstance(n, bool) for n in several)
    require(
        whole and 0 <= min(several) <= max(several) < 2**63 and len(set(several)) == len(several),
        f"Seeds are a number of them, or a list of different whole numbers from 0 to below 2**63, not {seeds!r}.",
    )
    return several


def settled(experiments: Sequence[Experiment], loaded: Loaded, jobs: int) -> list[Experiment]:
    """Return the experiments with everything chosen that they leave open, and refuse what cannot work.

    All get one cadence of scoring, so that the best round of one method is not chosen from more rounds than that of
    another. Each of `jobs` processes gets its share of the cores.
    """
    setups = [set_up(experiment, loaded(experiment)) for experiment in experiments]
    check_together([setup.need for setup in setups], jobs)
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


def scored_every_round(experiments: Sequence[Experiment]) -> list[Experiment]:
    """Return the experiments with every round scored, as rounds to a target need it; refuses one that says another."""
    said = next((one.evaluate_every for one in experiments if one.evaluate_every not in (None, 1)), None)
    require(said is None, f"A target needs every round scored, not every {said}; leave --target or that out.")
    return [replace(one, evaluate_every=1) for one in experiments]


def read_plan(folder: Path) -> dict[str, Any]:
    """Return what the runs in a folder set out to do, as JSON."""
    place = CommandFolder(folder)
    require(folder.is_dir(), f"There is no folder {folder} to resume; run without --resume to begin there.")
    require(place.has_plan, f"{folder} is not a run of fedkin (it has no plan.json) to be resumed.")
    return place.plan()


def stored_plan(folder: Path) -> Plan:
    """Return the plan of a folder. Data and modules that were handed over in Python cannot be found again."""
    plan, place = read_plan(folder), CommandFolder(folder)
    with named_in(folder):
        runs = [Planned(Experiment.from_json(value), run) for value, run in place.planned()]
    targets = tuple(plan.get("targets", ()))
    return Plan(place, runs, plan.get("jobs", 1), plan.get("tuned") or {}, targets, plan.get("cluster"))


def check_agreement(folder: Path, stored: list[dict[str, Any]], asked: list[Planned]) -> None:
    """Refuse runs that a folder did not set out to do; only their number of rounds may be larger.

    `stored` are the experiments of its plan, as JSON.
    """
    with named_in(folder):
        there = {key_of(value): value for value in map(with_new_fields, stored)}
    here = {key_of(one.experiment.described()): one.experiment for one in asked}
    every = [*there, *here]
    shown = [word for i, word in enumerate(WORDS) if not i or len({key[1 + i] for key in every}) > 1]
    names = [", ".join(named_run(key, shown) for key in runs) for runs in (there, here)]
    require(there.keys() == here.keys(), f"{folder} holds {names[0]}, not {names[1]}; choose another --out.")
    for key, experiment in here.items():
        check_same(there[key], experiment, f"{folder} holds another experiment", "choose another --out.")
        check_rounds(folder, there[key]["rounds"], experiment)


MANY = 10_000  # repetitions that a command may ask for
WORDS = ("seed", "split", "data seed")  # what runs of one method differ in


def key_of(value: dict[str, Any]) -> tuple[str, int, int, int]:
    """Return what tells a run of a comparison from the others: its method, its seed, its split and its data's seed."""
    data = value["data"]
    return value["method"]["name"], value["seed"], int(data.get("split") or 0), int(data.get("seed") or 0)


def named_run(key: tuple[Any, ...], shown: Sequence[str]) -> str:
    words = [f"{word} {number}" for word, number in zip(WORDS, key[1:], strict=True) if word in shown]
    return " ".join([key[0], *words])


def checked_splits(splits: object) -> int:
    """Return the number of splits, from 1."""
    return checked_number(splits, "--splits is a number of divisions into train and test")


def checked_data_seeds(data_seeds: object) -> int:
    """Return the number of seeds of the data, from 1."""
    return checked_number(data_seeds, "--data-seeds is a number of seeds of the data")


def checked_number(value: object, what: str) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MANY
    require(whole, f"{what} from 1 to {MANY:,}, not {value!r}.")
    return int(str(value))


def check_side_by_side(experiments: Sequence[Experiment], jobs: int, cluster: str | None) -> None:
    """Refuse a cluster that is not there, and runs side by side of which each uses all cores by itself."""
    busy = next((one.engine for one in experiments if one.engine in ACTORS), None)
    alone = busy is None or (jobs == 1 and cluster is None)
    require(alone, f"The engine {busy} uses all cores by itself; leave --jobs or --engine out.")
    if cluster is not None:
        check_cluster(cluster)


def check_tests(federation: Federation) -> None:
    """Refuse a federation in which no client has test samples; say so if each client has one sample only."""
    if federation.test.sizes.sum():
        return
    single = int(federation.train.sizes.max()) == 1
    require(single, "A comparison needs test samples, and no client has any; raise --test.")
    column = (federation.preparation or {}).get("client")
    advice = f"is '{column}' the right --client-column?" if column else "give every client more samples."
    raise BadInput(
        f"A comparison needs test samples, and none of the {federation.n:,} clients has any: they have at most 1 "
        f"sample each; {advice}"
    )


def with_new_fields(value: dict[str, Any]) -> dict[str, Any]:
    """Return a stored experiment with the defaults of fields that an older version did not know."""
    given = "given" in value["data"] or str(value["model"]).startswith("given: ")
    return value if given else Experiment.from_json(value).described()


def without_answers(plan: Plan) -> list[str]:
    """Return why no client gets an answer of its own: not all are scored, or the data have several seeds."""
    several, sampled = len({data_seed_of(one.experiment) for one in plan.runs}), plan.runs[0].experiment.score_clients
    if sampled is not None and len(plan.methods) > 1:
        return [f"Only {sampled:,} clients are scored (--score-clients), so no client gets an answer of its own."]
    if several == 1 or len(plan.methods) == 1:
        return []
    said = f"{several} data seeds: clients of different partitions are different clients, so no client gets an answer"
    return [f"{said} of its own; for answers leave --data-seeds out, and repeat with --splits."]
