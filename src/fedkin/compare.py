"""Several methods and seeds side by side, always with training alone; and where their runs lie.

runs/<name>/<method>/seed-<k>/     one run
runs/<name>/<method>/summary.json  its seeds together
runs/<name>/summary.json           everything: the methods, and each against Local
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedkin.data import load
from fedkin.data.federation import Federation
from fedkin.errors import BadInput, require
from fedkin.experiment import Experiment
from fedkin.methods.local import alone, matched
from fedkin.parts import Method, Train
from fedkin.play import Listener, cadence, run, running, versions
from fedkin.results import files, metrics
from fedkin.results.record import Run
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
        return path.exists() and files.read_json(path)["rounds"] >= self.experiment.rounds


def arms(experiment: Experiment, methods: list[Method], seeds: list[int], folder: Path) -> list[Arm]:
    names = [method.name for method in methods]
    require(len(set(names)) == len(names), f"Two methods of one comparison have the same name: {', '.join(names)}.")
    return [
        Arm(replace(experiment, method=method, seed=seed), folder / method.name / f"seed-{seed}")
        for method in methods
        for seed in seeds
    ]


def with_local(methods: list[Method]) -> list[Method]:
    """The methods with Local in front, trained with the steps and the rate of the first of them; a matched Local too
    takes after that one."""
    first = next((method for method in methods if method.name not in (LOCAL, MATCHED)), methods[0])
    followed = [matched(first) if method.name == MATCHED else method for method in methods]
    return followed if any(method.name == LOCAL for method in methods) else [alone(first), *followed]


def shared_cadence(experiment: Experiment, methods: list[Method], federation: Federation) -> int:
    """One cadence for all, so that the best of one method is not taken from more rounds than that of another. The model
    is built on the way, so that what cannot work is found before anything is written."""
    found = [experiment.evaluate_every or 1]
    for method in methods:
        with running(replace(experiment, method=method), federation, None) as (engine, task, _):
            found.append(cadence(method, task, engine))
            begun(method, task, experiment.seed)
    return experiment.evaluate_every or max(found)


def play(
    plan: list[Arm],
    federation: Federation,
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
        if goes_on:
            check_resumable(arm, warn)
        ear = listener(arm, number, len(plan))
        result = run(arm.experiment, arm.folder, resume=goes_on, listen=ear, warn=warn, federation=federation)
        if not result.finished:
            return False
    return True


def check_resumable(arm: Arm, warn: Callable[[str], None]) -> None:
    """The folder holds this very experiment, but for its number of rounds, where the schedule allows another."""
    try:
        stored = Run(arm.folder).experiment
    except files.Damaged as error:
        raise BadInput(f"{arm.folder} cannot be resumed: {error}.") from error
    asked, resolved = arm.experiment.described(), stored.pop("resolved", {})
    free = ("rounds", "evaluate_every", "chunk", "threads", "slot_memory")
    for name in asked:
        if name not in free and stored.get(name) != asked[name]:
            raise BadInput(
                f"{arm.folder} holds another experiment ({name} differs: {short(stored.get(name))} there, "
                f"{short(asked[name])} here); choose another --out."
            )
    if stored["rounds"] != asked["rounds"]:
        require(
            asked["rounds"] > stored["rounds"],
            f"{arm.folder} was begun for {stored['rounds']} rounds; ask for more, not {asked['rounds']}.",
        )
        require(
            arm.experiment.method.select.extends,
            f"The schedule of {arm.experiment.method.name} depends on the number of rounds, so a run of "
            f"{stored['rounds']} cannot be continued to {asked['rounds']}; start it anew.",
        )
    for name, now in versions().items():
        then = resolved.get("versions", {}).get(name)
        if then != now:
            warn(f"This run was begun with {name} {then} and goes on with {now}; its last digits may differ.")


def short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def stored_arms(folder: Path) -> list[Path]:
    """The runs that lie in a folder: the folder itself, or what is in it."""
    if (folder / "experiment.json").exists():
        return [folder]
    return sorted(path.parent for path in folder.glob("*/seed-*/experiment.json"))


def stored_plan(folder: Path) -> list[Arm]:
    """What the runs in a folder set out to do, as they wrote it down when they began."""
    require(folder.is_dir(), f"There is no folder {folder} to resume; run without --resume to begin there.")
    plan = files.read_json(folder / "plan.json") if (folder / "plan.json").exists() else None
    require(plan is not None, f"{folder} is not a run of fedkin (it has no plan.json), so it cannot be resumed.")
    assert plan is not None
    experiments = [Experiment.built(value) for value in plan["arms"]]
    return [Arm(e, folder / e.method.name / f"seed-{e.seed}") for e in experiments]


def write_plan(folder: Path, plan: list[Arm]) -> None:
    """Written before anything runs, so that `--resume FOLDER` needs no other word."""
    folder.mkdir(parents=True, exist_ok=True)
    files.write_json(folder / "plan.json", {"arms": [arm.experiment.described() for arm in plan]})


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
            if LOCAL in methods and name != LOCAL:
                summary["against_local"][name] = against(folder, plan, name)
    files.write_json(folder / "summary.json", summary)
    return summary


def compared(plan: list[Arm]) -> list[Method]:
    """The methods of a plan, each once."""
    return list({arm.experiment.method.name: arm.experiment.method for arm in plan}.values())


def uneven(methods: list[Method]) -> list[str]:
    """Methods whose clients train otherwise than Local's, a sentence each: their gain over Local is not only theirs."""
    alone = next((method for method in methods if method.name == LOCAL), None)
    said = []
    for method in methods if alone is not None else []:
        theirs, ours = effort(method.train), effort(alone.train)  # type: ignore[union-attr]
        if theirs != ours:
            said.append(
                f"{method.name} trains {theirs} a round, Local {ours}; set train.* alike before comparing the two."
            )
    return said


def effort(train: Train) -> str:
    how = f"{train.epochs} epoch(s)" if train.epochs else f"{train.steps} steps"
    return f"{how} of batch {train.batch} at rate {train.eta:g}"


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
    """Each client's last `post` accuracy minus what it reaches alone, for one seed."""  # (n,)
    theirs, alone = (Run(folder / method / f"seed-{seed}").accuracy("post")[-1] for method in (name, LOCAL))
    difference: np.ndarray = theirs - alone
    return difference


def federation_of(experiment: Experiment) -> Federation:
    return experiment.data if isinstance(experiment.data, Federation) else load(experiment.data)
