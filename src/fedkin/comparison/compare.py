"""Carries out a plan and says what came out: each method, and whether it is better than training alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np
from torch import nn

from fedkin.comparison.jobs import play_side_by_side
from fedkin.comparison.plan import Loaded, Plan, check_agreement, planned, settled, stored_plan, with_local
from fedkin.comparison.sequence import Watching, nobody
from fedkin.data import Data
from fedkin.data.federation import Federation
from fedkin.errors import require
from fedkin.evaluate import KINDS
from fedkin.methods import named
from fedkin.parts import Method
from fedkin.presets import PRESETS
from fedkin.presets.outcome import outcome
from fedkin.runs import files, metrics
from fedkin.runs.experiment import Experiment
from fedkin.runs.folder import CommandFolder
from fedkin.runs.run import Run
from fedkin.runs.verdict import LOCAL, gain, uneven, verdict

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Comparison:
    """What came out of several methods and seeds on the same data."""

    folder: CommandFolder
    runs: dict[str, dict[int, Run]]  # by method and seed
    methods: dict[str, dict[str, Any]]  # each method's summary over its seeds
    summary: dict[str, Any]  # what summary.json says
    temporary: bool = False  # the folder goes with this object

    @property
    def verdicts(self) -> dict[str, dict[str, Any]]:
        """Each method against Local: 'better' and 'worse' (shares of clients), 'gain' (the mean), 'p' and 'verdict'."""
        return dict(self.summary.get("against_local", {}))

    def table(self) -> pd.DataFrame:
        """Return a row for each method: its accuracies in the last round, its verdict and its cost.

        Accuracies are fractions: means over seeds, with their standard deviations where there are several seeds.
        """
        import pandas as pd

        rows = []
        for name, found in self.methods.items():
            row: dict[str, Any] = {"method": name}
            for kind, average in self.scored():
                values = found["accuracy"].get(kind, {}).get(average, {})
                row[f"{kind} {average}"] = values.get("last")
                if len(found["seeds"]) > 1:
                    row[f"{kind} {average} std"] = found["spread"].get(kind, {}).get(average, {}).get("last")
            against = self.verdicts.get(name, {})
            row |= {word: against.get(word) for word in ("better", "worse", "gain", "p", "verdict")}
            rows.append(row | {"uploads": found["cost"]["uploads"], "seconds": found["time"]["total_s"]})
        return pd.DataFrame(rows).set_index("method")

    def scored(self) -> list[tuple[str, str]]:
        """Return the kinds and averages of accuracy that any method has, in the order of the table."""
        has = [kind for kind in KINDS if any(kind in found["accuracy"] for found in self.methods.values())]
        return [(kind, average) for kind in has for average in (("micro",) if kind == "test" else metrics.AVERAGES)]

    def gains(self) -> pd.DataFrame:
        """Return a row for each client and a column for each method: the gain over training alone, mean over seeds.

        A gain is a difference of last `post` accuracies, as a fraction. It is nan for clients without test samples and
        for clients known to be irrelevant.
        """
        import pandas as pd

        names = next(iter(next(iter(self.runs.values())).values())).about_clients["names"]
        columns = {name: gains_over_local(self.runs, name).mean(0) for name in self.verdicts}
        return pd.DataFrame(columns, index=pd.Index(names, name="client"))

    def report(self, path: Path | str | None = None) -> Path:
        """Write the page that shows all this, into the comparison's folder or to this path; returns its path."""
        from fedkin.report.page import write  # plotly is an extra

        require(
            path is not None or not self.temporary,
            "This comparison was given no folder; say where the report goes: report('report.html').",
        )
        page = write(self.folder.path)
        if path is None:
            return page
        files.write(Path(path), page.read_bytes())
        return Path(path)

    def __str__(self) -> str:
        return str(self.table().to_string())


def compare(
    methods: Sequence[Method | str],
    data: Data | Federation | None = None,
    model: str | nn.Module = "mlr",
    rounds: int = 100,
    *,
    seeds: int | Sequence[int] = 1,
    folder: Path | str | None = None,
    resume: bool = False,
    jobs: int = 1,
    evaluate_every: int | None = None,
    engine: str = "stacked",
    device: str = "cpu",
    warn: Callable[[str], None] = print,
) -> Comparison:
    """Run several methods on the same data, clients and batches, always with Local, training alone, beside them.

    `methods` are methods or their names. `seeds` is how many seeds (3 means 0, 1, 2), or which. With a folder the runs
    are recorded there, and `resume=True` goes on with what lies in it; without one they lie in a temporary folder that
    goes with the comparison. `jobs` runs are played side by side.

        found = fk.compare(["fedavg", "fedmcsa"], fk.Data("digits", clients=10), rounds=20, seeds=3)
        print(found.table())
        found.verdicts["fedmcsa"]["verdict"]
    """
    chosen = with_local([named(method) if isinstance(method, str) else method for method in methods])
    like = Experiment(chosen[0], Data() if data is None else data, model, rounds)
    like = replace(like, engine=engine, evaluate_every=evaluate_every, device=device)
    several = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    require(several, "A comparison needs at least one seed.")
    place = Path(mkdtemp(prefix="fedkin-") if folder is None else folder)
    loaded = Loaded()
    plan = plan_for([replace(like, method=method) for method in chosen], several, place, loaded, resume, jobs)
    found = carry_out(plan, loaded, resume=resume, warn=warn)
    assert found is not None  # nobody asks it to stop
    if folder is not None:
        return found
    found = replace(found, temporary=True)
    finalize(found, rmtree, place, ignore_errors=True)
    return found


def plan_for(
    experiments: Sequence[Experiment],
    seeds: Sequence[int],
    folder: Path | Callable[[], Path],
    loaded: Loaded,
    resume: bool = False,
    jobs: int | None = None,
    preset: str | None = None,
) -> Plan:
    """Check everything that can be checked before a run, and return the plan.

    `folder` may be a function that makes a new one; it is called only when nothing is wrong. Without `jobs` it is as
    many as the folder's plan says, or one.
    """
    if isinstance(folder, Path):
        busy = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
        sentence = f"{folder} exists already; choose another --out, or add --resume to go on with it."
        require(resume or not busy, sentence)
    stored = stored_plan(folder) if resume and isinstance(folder, Path) else None
    number = jobs or (stored.jobs if stored else 1)
    tests = int(loaded(experiments[0]).test.sizes.sum())
    require(len(experiments) == 1 or tests, "A comparison needs test samples, and no client has any; raise --test.")
    if stored:  # what was chosen then holds
        then = {one.experiment.method.name: one.experiment for one in stored.runs}
        experiments = [chosen_before(experiment, then) for experiment in experiments]
    experiments = settled(experiments, loaded, min(number, len(experiments) * len(seeds)))
    if stored:
        check_agreement(stored, planned(experiments, seeds, stored.folder))
    place = CommandFolder(folder if isinstance(folder, Path) else folder())
    return Plan(place, planned(experiments, seeds, place), number, preset)


def chosen_before(experiment: Experiment, then: dict[str, Experiment]) -> Experiment:
    """Return the experiment with the cadence and the threads it was begun with, where it does not say others."""
    before = then.get(experiment.method.name, experiment)
    return replace(
        experiment,
        evaluate_every=experiment.evaluate_every or before.evaluate_every,
        threads=experiment.threads or before.threads,
    )


def carry_out(
    plan: Plan,
    loaded: Loaded,
    *,
    resume: bool = False,
    watching: Watching = nobody,
    warn: Callable[[str], None] = print,
    stopping: Callable[[], bool] = lambda: False,
) -> Comparison | None:
    """Play a plan to its end and summarise it; returns None if it was stopped on the way."""
    path = plan.folder.path
    path.mkdir(parents=True, exist_ok=True)
    with files.locked(path):
        new = resume or not plan.folder.planned
        require(new, f"Another command was at work in {path} just now; choose another --out, or add --resume.")
        plan.write()
        for sentence in uneven(plan.methods):
            warn(sentence)
        options: dict[str, Any] = {"resume": resume, "watching": watching, "warn": warn, "stopping": stopping}
        done = play_side_by_side(plan.runs, plan.jobs, loaded, **options)
        return concluded(plan) if done else None


def concluded(plan: Plan) -> Comparison:
    """Write the summaries above the runs: of each method over its seeds, and of all methods."""
    runs: dict[str, dict[int, Run]] = {}
    for one in plan.runs:
        runs.setdefault(one.experiment.method.name, {})[one.experiment.seed] = one.run
    methods = {name: metrics.merged([run.summary for run in found.values()]) for name, found in runs.items()}
    for name, found in methods.items():
        plan.folder.write_summary(found, name)
    if len(methods) == 1:
        summary: dict[str, Any] = next(iter(methods.values()))
    else:
        scored = [name for name in methods if name != LOCAL and "post" in methods[name]["accuracy"]]
        against = {name: verdict(gains_over_local(runs, name)) for name in scored if LOCAL in methods}
        summary = {"methods": methods, "against_local": against, "cautions": uneven(plan.methods)}
    if plan.preset in PRESETS:
        rows = {name: list(found.values()) for name, found in runs.items()}
        summary = summary | {"preset": outcome(PRESETS[plan.preset], rows)}
    plan.folder.write_summary(summary)
    return Comparison(plan.folder, runs, methods, summary)


def gains_over_local(runs: dict[str, dict[int, Run]], name: str) -> np.ndarray:
    """Return each client's gain over training alone with a method, a row for each seed."""  # (seeds, n)
    return np.stack([gain(run, runs[LOCAL][seed]) for seed, run in runs[name].items()])
