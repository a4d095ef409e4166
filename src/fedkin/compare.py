"""Several methods and seeds side by side, always with training alone; and where their runs lie.

runs/<name>/plan.json              what the command set out to do
runs/<name>/<method>/seed-<k>/     one run
runs/<name>/<method>/summary.json  its seeds together
runs/<name>/summary.json           everything: the methods, and each against Local
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedkin.data import Data, load
from fedkin.data.federation import Federation
from fedkin.errors import BadInput, require
from fedkin.experiment import Experiment
from fedkin.methods.local import alone, matched
from fedkin.parts import Method
from fedkin.play import Listener, cadence, cores, run, running
from fedkin.results import files, metrics
from fedkin.results.record import Run
from fedkin.resume import FREE, check_rounds, difference
from fedkin.round import begun

LOCAL, MATCHED = "local", "local_matched"
LEVEL = 0.05  # of the paired test that calls a difference a win


@dataclass(frozen=True)
class Arm:
    """One method with one seed, and its folder."""

    experiment: Experiment
    folder: Path

    @property
    def done(self) -> bool:
        """Finished, and with as many rounds as are asked for now."""
        path = self.folder / "summary.json"
        return path.exists() and files.read_json(path).get("rounds") == self.experiment.rounds

    @property
    def name(self) -> str:
        return f"{self.experiment.method.name} seed {self.experiment.seed}"


class Loaded:
    """The federation of an experiment, loaded when it is first asked for; the last one is kept for the next arm."""

    def __init__(self) -> None:
        self.data: Data | None = None
        self.federation: Federation | None = None

    def __call__(self, experiment: Experiment) -> Federation:
        if isinstance(experiment.data, Federation):
            return experiment.data
        if self.federation is None or experiment.data != self.data:
            self.data, self.federation = experiment.data, load(experiment.data)
        return self.federation


def arms(experiment: Experiment, methods: list[Method], seeds: Sequence[int], folder: Path) -> list[Arm]:
    """One experiment with each of these methods and seeds."""
    return arms_of([replace(experiment, method=method) for method in methods], seeds, folder)


def arms_of(experiments: list[Experiment], seeds: Sequence[int], folder: Path) -> list[Arm]:
    """Each of these experiments, named by its method, with each of these seeds."""
    names = [experiment.method.name for experiment in experiments]
    require(len(set(names)) == len(names), f"Two methods of one comparison have the same name: {', '.join(names)}.")
    return [
        Arm(replace(experiment, seed=seed), folder / experiment.method.name / f"seed-{seed}")
        for experiment in experiments
        for seed in seeds
    ]


def with_local(methods: list[Method]) -> list[Method]:
    """The methods with Local in front, trained with the steps and the rate of the first of them; a matched Local too
    takes after that one."""
    first = next((method for method in methods if method.name not in (LOCAL, MATCHED)), methods[0])
    followed = [matched(first) if method.name == MATCHED else method for method in methods]
    return followed if any(method.name == LOCAL for method in methods) else [alone(first), *followed]


def settled(experiments: list[Experiment], loaded: Loaded, jobs: int) -> list[Experiment]:
    """The experiments with what was left open. One cadence for all, so that the best of one method is not taken from
    more rounds than that of another; and for each of `jobs` processes its share of the cores. The models are built on
    the way, so that what cannot work is found before anything is written."""
    every, threads = [], []
    for experiment in experiments:
        with running(experiment, loaded(experiment), None) as (engine, task, usual):
            every.append(cadence(experiment, task, engine))
            threads.append(experiment.threads or min(usual, max(1, cores() // jobs)))
            begun(experiment.method, task, experiment.seed)
    return [
        replace(experiment, evaluate_every=experiment.evaluate_every or max(every), threads=number)
        for experiment, number in zip(experiments, threads, strict=True)
    ]


def play(
    plan: list[Arm],
    federation: Federation | Loaded,
    *,
    resume: bool = False,
    listener: Callable[[Arm, int, int], Listener | None] = lambda *_: None,
    warn: Callable[[str], None] = print,
) -> bool:
    """Run every arm that is not done; False if it was stopped on the way."""
    for number, arm in enumerate(plan, 1):
        if arm.done:
            continue
        goes_on = resume and (arm.folder / "experiment.json").exists()
        ear = listener(arm, number, len(plan))
        found = federation if isinstance(federation, Federation) else federation(arm.experiment)
        result = run(arm.experiment, arm.folder, resume=goes_on, listen=ear, warn=warn, federation=found)
        if not result.finished:
            return False
    return True


def stored_arms(folder: Path) -> list[Path]:
    """The runs that lie in a folder: the folder itself, or what is in it."""
    if (folder / "experiment.json").exists():
        return [folder]
    return sorted(path.parent for path in folder.glob("*/seed-*/experiment.json"))


@dataclass(frozen=True)
class Plan:
    """What a command sets out to do: its arms, how many of them side by side, and for which preset."""

    arms: list[Arm]
    jobs: int = 1
    preset: str | None = None


def write_plan(folder: Path, arms: list[Arm], jobs: int = 1, preset: str | None = None) -> None:
    """Written before anything runs, so that `--resume FOLDER` needs no other word."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {"arms": [arm.experiment.described() for arm in arms], "jobs": jobs, "preset": preset}
    files.write_json(folder / "plan.json", about)


def stored_plan(folder: Path) -> Plan:
    """What the runs in a folder set out to do, as they wrote it down when they began."""
    require(folder.is_dir(), f"There is no folder {folder} to resume; run without --resume to begin there.")
    require((folder / "plan.json").exists(), f"{folder} is not a run of fedkin (it has no plan.json) to be resumed.")
    plan = files.read_json(folder / "plan.json")
    whole = isinstance(plan, dict) and isinstance(plan.get("arms"), list) and plan["arms"]
    require(whole, f"{folder / 'plan.json'} is damaged, so the run cannot be resumed; start it anew elsewhere.")
    experiments = [Experiment.built(value) for value in plan["arms"]]
    stored = [Arm(e, folder / e.method.name / f"seed-{e.seed}") for e in experiments]
    return Plan(stored, plan.get("jobs", 1), plan.get("preset"))


def agreed(stored: list[Arm], asked: list[Arm]) -> None:
    """What is asked for is what the folder set out to do, but for the number of rounds."""
    there, here = (
        {(a.experiment.method.name, a.experiment.seed): a.experiment for a in plan} for plan in (stored, asked)
    )
    folder = stored[0].folder.parent.parent
    names = [", ".join(f"{name} seed {seed}" for name, seed in plan) for plan in (there, here)]
    require(there.keys() == here.keys(), f"{folder} holds {names[0]}, not {names[1]}; choose another --out.")
    for key, experiment in here.items():
        old, new = there[key].described(), experiment.described()
        for name in new:
            if name not in FREE and (found := difference(old[name], new[name], name)):
                path, then, now = found
                raise BadInput(
                    f"{folder} holds another experiment ({path} is {then!r} there and {now!r} here); choose another "
                    "--out."
                )
        check_rounds(folder, there[key].rounds, experiment)


def summarised(folder: Path, plan: list[Arm]) -> dict[str, Any]:
    """Write the summaries above the runs: of each method over its seeds, and of all methods."""
    methods: dict[str, Any] = {}
    for name in dict.fromkeys(arm.experiment.method.name for arm in plan):
        runs = [arm.folder for arm in plan if arm.experiment.method.name == name]
        methods[name] = metrics.merged([Run(path).summary for path in runs])
        files.write_json(folder / name / "summary.json", methods[name])
    if len(methods) == 1:
        summary: dict[str, Any] = next(iter(methods.values()))
    else:
        summary = {"methods": methods, "against_local": {}, "cautions": uneven(compared(plan))}
        for name in methods:
            if LOCAL in methods and name != LOCAL and "post" in methods[name]["accuracy"]:
                summary["against_local"][name] = against(folder, plan, name)
    files.write_json(folder / "summary.json", summary)
    return summary


def compared(plan: list[Arm]) -> list[Method]:
    """The methods of a plan, each once."""
    return list({arm.experiment.method.name: arm.experiment.method for arm in plan}.values())


def uneven(methods: list[Method]) -> list[str]:
    """Methods whose clients train otherwise than Local's, a sentence each: their gain over Local is not only theirs."""
    local = next((method for method in methods if method.name == LOCAL), None)
    said = []
    for method in methods if local is not None else []:
        theirs, ours = effort(method), effort(local)  # type: ignore[arg-type]
        if theirs != ours:
            said.append(
                f"{method.name} trains {theirs} a round, Local {ours}; set train.* alike before comparing the two."
            )
    return said


def effort(method: Method) -> str:
    """What a client does in a round, as Local would have to do it."""
    train = alone(method).train
    how = f"{train.epochs} epoch(s)" if train.epochs else f"{train.steps} steps"
    extra = [f"{name} {value:g}" for name in ("momentum", "weight_decay") if (value := train.values()[name])]
    return ", ".join([f"{how} of batch {train.batch} at rate {train.eta:g}", *extra])


def against(folder: Path, plan: list[Arm], name: str) -> dict[str, Any]:
    """How many clients a method leaves better and worse off than alone, by their last `post` accuracy, client by client
    and seed by seed; and whether the difference is a win: a paired Wilcoxon test over clients, of means over seeds, and
    the same sign in every seed."""
    gains = np.stack([gain(folder, arm.experiment.seed, name) for arm in plan if arm.experiment.method.name == name])
    valid = ~np.isnan(gains).all(0)
    per_client = gains[:, valid].mean(0)
    from scipy import stats  # takes a second to import, and only a comparison needs it

    p = 1.0 if np.allclose(per_client, 0) else float(stats.wilcoxon(per_client).pvalue)
    signs = np.sign(gains[:, valid].mean(1))
    sure = p < LEVEL and len(set(signs.tolist())) == 1
    return {
        "better": float((gains[:, valid] > 0).mean()),
        "worse": float((gains[:, valid] < 0).mean()),
        "gain": float(per_client.mean()),
        "p": p,
        "verdict": ("better" if signs[0] > 0 else "worse") if sure else "no clear difference",
    }


def gain(folder: Path, seed: int, name: str) -> np.ndarray:
    """Each client's last `post` accuracy minus what it reaches alone, for one seed; nan for clients known to be
    irrelevant, for whom anything beats their own labels and whose gain would flatter every method."""  # (n,)
    theirs, alone = (Run(folder / method / f"seed-{seed}").accuracy("post")[-1] for method in (name, LOCAL))
    path = folder / name / f"seed-{seed}" / "clients.json"
    irrelevant = files.read_json(path).get("irrelevant") if path.exists() else None
    gained: np.ndarray = theirs - alone
    return gained if irrelevant is None else np.where(irrelevant, np.nan, gained)
