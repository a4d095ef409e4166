"""Tunes methods by validation samples: `fk.tune`, and what the command does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from fedkin.comparison.arms import read_arms
from fedkin.comparison.experiment_files import as_file, like_files
from fedkin.comparison.plan import checked_seeds
from fedkin.comparison.result import Temporary
from fedkin.comparison.sequence import once
from fedkin.data import Data
from fedkin.data.federation import Federation
from fedkin.errors import BadInput, require
from fedkin.parts import Method
from fedkin.runs import files
from fedkin.runs.callback import Callback, Callbacks
from fedkin.runs.experiment import Experiment
from fedkin.runs.imbalance import one_sided
from fedkin.runs.toml import toml
from fedkin.runs.validation import SHARE
from fedkin.tuning.budget import Budget, Tried
from fedkin.tuning.loaded import Validated
from fedkin.tuning.plan import Plan, Tuning, plan_for
from fedkin.tuning.search import Search, Watching, nobody, play_in_sequence

if TYPE_CHECKING:
    import pandas as pd

TOGETHER = "Each trial is a run on the same samples: together they spend more epsilon than --dp counts of one of them."
NEEDED = "Tuning needs Optuna: pip install 'fedkin[tune]'."


@dataclass(frozen=True)
class Tuned:
    """A method with its best settings by validation samples, and all that was tried."""

    experiment: Experiment  # as it was asked for, with the best settings and the validation samples held out
    note: dict[str, Any]  # the budget, as the method's file and comparisons say it
    tried: tuple[Tried, ...]  # the best first
    seeds: tuple[int, ...]
    folder: Path
    temporary: Temporary | None = None  # of a tuning that was given no folder

    @property
    def method(self) -> Method:
        """The method with its best settings."""
        return self.experiment.method

    @property
    def value(self) -> float:
        """What the best settings came to on validation samples."""
        return float(self.note["value"])

    def trials(self) -> pd.DataFrame:
        """Return a row for each trial, the best first: its settings, the validation value, its state and last round."""
        import pandas as pd

        rows = [
            {"trial": one.number, **one.settings, "value": one.value, "state": one.state, "round": one.round}
            for one in self.tried
        ]
        return pd.DataFrame(rows).set_index("trial")

    def described(self) -> dict[str, Any]:
        """Return the experiment with the best settings as a file has it, with the note."""
        return together([self])

    def save(self, path: Path | str) -> Path:
        """Write the experiment with the best settings to a .toml file, for fedkin run and fedkin compare."""
        require(Path(path).suffix == ".toml", f"Best settings are saved as .toml, not as '{Path(path).name}'.")
        files.write(Path(path), toml(self.described()).encode())
        return Path(path)


def tune(
    method: Method | str,
    data: Data | Federation | str | None = None,
    model: str | nn.Module | None = None,
    rounds: int | None = None,
    *,
    space: Sequence[str] | Mapping[str, object] = (),
    trials: int = 20,
    grid: bool = False,
    prune: bool = True,
    validation: float = SHARE,
    average: str = "macro",
    metric: str | None = None,
    seeds: int | Sequence[int] | None = None,
    seed: int = 0,
    folder: Path | str | None = None,
    resume: bool = False,
    jobs: int = 1,
    evaluate_every: int | None = None,
    class_weights: str | None = None,
    dp: str | None = None,
    engine: str | None = None,
    threads: int | None = None,
    device: str | None = None,
    callbacks: Sequence[Callback] = (),
    warn: Callable[[str], None] = print,
) -> Tuned:
    """Search the settings of a method that are best by validation samples; test samples are never looked at.

    `space` says which fields are tried: {"train.lam": "0.1..10:log", "collaborate.sigma": [10, 30]}; without it these
    are the method's learning rate and its paper's numbers. `trials` settings are tried, or with `grid` every
    combination of the listed values. With `prune` trials that fall behind are given up. The value of a trial is the
    metric that decides, of the model by which the method is judged, on the validation samples, in the last round;
    `average` is over clients ("macro") or samples ("micro"), and over `seeds`. If the data hold no validation samples
    out, `validation` says which share of each client's samples they are. `seed` is that of the settings that are tried.
    With a folder the study is kept there, and `resume=True` goes on with it. The other parameters are those of
    `fk.compare`.

        found = fk.tune("fedmcsa", fk.Data("digits"), rounds=50, space={"lam": "0.1..10:log"}, trials=20)
        print(found.trials())
        fk.run(found.experiment)
    """
    chosen = read_arms([method])
    require(len(chosen) == 1, f"fk.tune takes one method, and '{method}' is several; call it for each.")
    require(folder is not None or not resume, "Resuming needs the folder of the tuning.")
    said: dict[str, Any] = {"model": model, "rounds": rounds, "engine": engine, "threads": threads, "device": device}
    said |= {"evaluate_every": evaluate_every, "metric": metric, "class_weights": class_weights, "dp": dp}
    said |= {"data": Data(data) if isinstance(data, str) else data}
    like, repeated = like_files([method], chosen[0], {name: value for name, value in said.items() if value is not None})
    temporary = Temporary() if folder is None else None
    place = Path(folder or "") if temporary is None else temporary.path
    loaded = Validated()
    plan = plan_for(
        [like],
        checked_seeds(repeated["seeds"] if seeds is None else seeds),
        dict(space) if isinstance(space, Mapping) else list(space),
        Budget(trials, prune, grid, average, seed),
        place,
        loaded,
        validation=validation,
        resume=resume,
        jobs=jobs,
    )

    def told(_: object) -> Callback:
        return Callbacks(tuple(callbacks))

    found = carry_out(plan, loaded, watching=told, warn=warn)
    if found is None:
        where = "it had no folder to go on in" if temporary else f"go on with folder={str(place)!r} and resume=True"
        raise BadInput(f"A callback stopped the tuning; {where}.")
    return replace(found[0], temporary=temporary)


def carry_out(
    plan: Plan,
    loaded: Validated,
    *,
    watching: Watching = nobody,
    warn: Callable[[str], None] = print,
    stopping: Callable[[], bool] = lambda: False,
) -> list[Tuned] | None:
    """Tune the methods of a plan one after another and write their best settings; None if it was stopped."""
    files.make_folder(plan.folder)
    found: list[Tuned] = []
    warn = once(warn)
    with files.locked(plan.folder):
        plan.write()
        for sentence in about_data(loaded(plan.tunings[0].asked), plan.tunings[0].asked):
            warn(sentence)
        for tuning in plan.tunings:
            tuned = tuned_method(plan, tuning, loaded, watching, warn, stopping)
            if tuned is None:
                return None
            found.append(tuned)
        if len(found) > 1:
            files.write(plan.comparison, toml(together(found)).encode())
    return found


def about_data(federation: Federation, asked: Experiment) -> list[str]:
    """Return what a user should know of the data, and of their privacy, before the first trial."""
    said = [f"Client {name} has no samples and is left out." for name in federation.left_out]
    sides = (federation.label_counts(), federation.names, federation.labels, asked.metric)
    noised = [] if asked.dp is None else [TOGETHER]
    return [*said, *federation.notes, *(one_sided(*sides) if federation.task == "classify" else []), *noised]


def tuned_method(
    plan: Plan,
    tuning: Tuning,
    loaded: Validated,
    watching: Watching,
    warn: Callable[[str], None],
    stopping: Callable[[], bool],
) -> Tuned | None:
    """Play the trials of one method that are left, and write its best settings; None if that was stopped."""
    try:
        from fedkin.tuning.study import opened
    except ModuleNotFoundError as error:
        if error.name not in ("optuna", "sqlalchemy"):
            raise
        raise BadInput(NEEDED) from None

    folder = plan.study(tuning.name)
    files.make_folder(folder)
    with opened(
        folder / "study.db", tuning.method, tuning.space, tuning.aim, tuning.budget, tuning.experiment.rounds
    ) as study:
        search = Search(tuning.experiment, plan.seeds, study, folder, watching)
        if not play_all(search, plan.jobs, loaded, warn, stopping):
            return None
        tried = tuple(study.tried())
        best = tried[0]
        failed = f"All trials of {tuning.name} failed; the first one because {best.why}"
        require(best.state == "done" and best.value is not None, failed)
        experiment = replace(tuning.asked, method=study.with_settings(best.settings))
    tuned = Tuned(experiment, note_of(tuning, plan.seeds, tried), tried, plan.seeds, plan.folder)
    if isinstance(experiment.data, Data) and isinstance(experiment.model, str):
        tuned.save(plan.best(tuning.name))
    return tuned


def play_all(
    search: Search, jobs: int, loaded: Validated, warn: Callable[[str], None], stopping: Callable[[], bool]
) -> bool:
    """Play the trials that are left, side by side where that is asked for; returns False if they were stopped."""
    travels = isinstance(search.experiment.data, Data) and isinstance(search.experiment.model, str)
    if jobs > 1 and not travels:
        warn("Data and modules handed over in Python stay in their process, so the trials run one after another.")
    if jobs < 2 or not travels:
        return play_in_sequence(search, loaded)
    from fedkin.tuning.processes import Crew

    return Crew(search, jobs, warn).play(stopping)


def note_of(tuning: Tuning, seeds: Sequence[int], tried: Sequence[Tried]) -> dict[str, Any]:
    """Return what the file of a tuned method says of how it was tuned."""
    return {
        "trials": len(tried),
        "rounds": tuning.asked.rounds,
        "seeds": list(seeds),
        "metric": tuning.aim.metric,
        "average": tuning.aim.average,
        "kind": tuning.aim.kind,
        "value": tried[0].value,
        "given_up": sum(one.state == "given up" for one in tried),
        "failed": sum(one.state == "failed" for one in tried),
        "grid": tuning.budget.grid,
        "space": {path: str(axis) for path, axis in tuning.space.items()},
    }


def together(found: Sequence[Tuned]) -> dict[str, Any]:
    """Return all tuned methods as one file has them, with the note of each."""
    experiments = [one.experiment for one in found]
    return as_file(experiments, found[0].seeds) | {"tuned": {one.method.name: one.note for one in found}}
