"""What lies in the folder of a run or a comparison, finished or not. The report reads run folders only here and in
`trial.py`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedkin.compare import LOCAL, stored_arms
from fedkin.errors import require
from fedkin.parts import KINDS
from fedkin.report.findings.participation import Participation
from fedkin.report.trial import StoredRun, Trial
from fedkin.results import files
from fedkin.results.metrics import AVERAGES, TAIL, merged

__all__ = ["AVERAGES", "LOCAL", "TAIL", "Entry", "Study", "Trial", "Values", "studied"]

Values = dict[int, list[float]]  # round -> a value a seed


@dataclass(frozen=True)
class Entry:
    """One method with all its seeds."""

    name: str
    trials: tuple[Trial, ...]

    @cached_property
    def done(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.summary is not None]

    @cached_property
    def summary(self) -> dict[str, Any] | None:
        """The numbers over the finished seeds."""
        return merged([trial.summary for trial in self.done if trial.summary]) if self.done else None

    @property
    def drawn(self) -> Trial | None:
        """The first seed that has played a round: pictures of single rounds show this one."""
        return next((trial for trial in self.trials if trial.participation), None)

    def accuracies(self, kind: str, average: str) -> Values:
        """Accuracies by round, of the finished seeds or, if there are none, of those begun. A round that one of these
        seeds does not have is left out, because a mean over fewer seeds would jump."""
        found = []
        for trial in self.done or self.trials:
            points = {line["round"]: line["accuracy"].get(kind, {}).get(average) for line in trial.scored}
            found.append({r: value for r, value in points.items() if value is not None})
        return in_common(found)

    def numbers(self, part: str, word: str) -> Values:
        """A number that a part writes down by round ('collaborate', 'self_weight'), of the same seeds and rounds."""
        seeds = [[line for line in trial.lines if part in line] for trial in self.done or self.trials]
        return in_common([{x["round"]: x[part][word] for x in s if word in x[part]} for s in seeds])

    @cached_property
    def selected(self) -> np.ndarray:
        """The share of rounds in which each client was selected, mean over finished seeds, or those begun."""  # (n,)
        known = [trial.participation for trial in self.done or self.trials]
        mean: np.ndarray = np.mean([one.selected / one.rounds for one in known if one], axis=0)
        return mean


def in_common(found: list[dict[int, float]]) -> Values:
    """The values of all seeds that have any, in the rounds that each of those seeds has."""
    found = [points for points in found if points]
    return {r: [points[r] for points in found] for r in (found[0] if found else {}) if all(r in p for p in found)}


@dataclass(frozen=True)
class Study:
    """Everything in a folder: methods in the order in which they were asked for."""

    folder: Path
    entries: dict[str, Entry]

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def trials(self) -> list[Trial]:
        return [trial for entry in self.entries.values() for trial in entry.trials]

    @property
    def begun(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.begun]

    @property
    def experiment(self) -> dict[str, Any]:
        return self.begun[0].experiment

    @cached_property
    def clients(self) -> dict[str, Any]:
        """Names, and the numbers of samples where they were written down."""
        return next((trial for trial in self.begun if trial.lists_clients), self.begun[0]).clients

    @cached_property
    def drawn(self) -> dict[str, tuple[Trial, Participation]]:
        """For every method that has played a round: the seed that is drawn, and who took part in it."""
        found = {name: entry.drawn for name, entry in self.entries.items()}
        return {name: (trial, trial.participation) for name, trial in found.items() if trial and trial.participation}

    @cached_property
    def summaries(self) -> dict[str, dict[str, Any]]:
        """Of the methods that have a finished seed."""
        return {name: entry.summary for name, entry in self.entries.items() if entry.summary}

    @cached_property
    def finished(self) -> bool:
        return all(trial.summary is not None for trial in self.trials)

    @cached_property
    def stored(self) -> dict[str, Any]:
        """The summary above the runs; empty if there is none."""
        path = self.folder / "summary.json"
        return dict(files.read_json(path)) if path.exists() else {}

    @property
    def cautions(self) -> list[str]:
        """The warnings that the comparison wrote into its summary."""
        return list(self.stored.get("cautions", []))

    @property
    def preset(self) -> dict[str, Any] | None:
        """What a preset's rows came to beside the published numbers, once all are finished."""
        return self.stored.get("preset") if self.finished else None

    @cached_property
    def kinds(self) -> list[str]:
        """The kinds of accuracy that any method has, in the order of the table."""
        found = [line["accuracy"] for trial in self.trials for line in trial.scored[-1:]]
        return [kind for kind in KINDS if any(kind in accuracy for accuracy in found)]

    @property
    def ranking_kind(self) -> str:
        """The kind of accuracy that methods are ranked by: `post`, unless it was not scored."""
        return (self.kinds or ["post"])[0]

    @property
    def scored_rounds(self) -> list[int]:
        """The scored rounds of the first finished run."""
        trial = next((entry.done[0] for entry in self.entries.values() if entry.done), None)
        return [line["round"] for line in trial.scored] if trial else []

    @cached_property
    def against(self) -> dict[str, Any]:
        """The verdicts against Local, if they are of these very runs: all finished, the same seeds and rounds."""
        found = self.stored if self.finished else {}
        stored = found.get("methods", {})
        fresh = stored.keys() == self.summaries.keys() and all(
            stored[name][word] == self.summaries[name][word] for name in stored for word in ("seeds", "rounds")
        )
        return dict(found.get("against_local", {})) if fresh else {}

    @property
    def winners(self) -> list[str]:
        """The methods that may be called better than training alone."""
        return [name for name, found in self.against.items() if found["verdict"] == "better"]

    @cached_property
    def gains(self) -> dict[str, np.ndarray]:
        """Post accuracy minus Local's, by method; a row a seed that both finished in as many rounds."""  # (seeds, n)
        if LOCAL not in self.entries:
            return {}
        alone = {(trial.seed, trial.reached): trial for trial in self.entries[LOCAL].done}
        result = {}
        for name, entry in self.entries.items():
            scored = name != LOCAL and entry.summary and "post" in entry.summary["accuracy"]
            pairs = [(t, alone[t.seed, t.reached]) for t in entry.done if scored and (t.seed, t.reached) in alone]
            if pairs:
                result[name] = np.stack([gain(theirs, local) for theirs, local in pairs])
        return {name: gains for name, gains in result.items() if not np.isnan(gains).all()}


def gain(theirs: Trial, local: Trial) -> np.ndarray:
    """Each client's last `post` accuracy minus what it reaches alone; nan for irrelevant clients."""  # (n,)
    gained: np.ndarray = theirs.post - local.post
    irrelevant = theirs.clients.get("irrelevant")
    return gained if irrelevant is None else np.where(irrelevant, np.nan, gained)


def studied(folder: Path) -> Study:
    """The study of a folder. Runs that its plan names and that have not begun are in it too."""
    begun = stored_arms(folder)
    require(begun, f"{folder} is not a run of fedkin, or its first run has not begun; there is nothing to report.")
    if begun != [folder] and (folder / "plan.json").exists():
        planned = files.read_json(folder / "plan.json")["arms"]
        found = [(e["method"]["name"], e["seed"], e["rounds"]) for e in planned]
        trials = [
            (name, Trial(seed, StoredRun(folder / name / f"seed-{seed}"), rounds)) for name, seed, rounds in found
        ]
    else:
        runs = [StoredRun(path) for path in begun]
        about = [run.experiment for run in runs]
        trials = [(e["method"]["name"], Trial(e["seed"], run, e["rounds"])) for run, e in zip(runs, about, strict=True)]
        trials.sort(key=lambda pair: (pair[0] != LOCAL, pair[0], pair[1].seed))
    names = dict.fromkeys(name for name, _ in trials)
    return Study(folder, {name: Entry(name, tuple(t for other, t in trials if other == name)) for name in names})
