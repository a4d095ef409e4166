"""What lies in the folder of a run or a comparison, finished or not, as its readers need it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedkin.compare import LOCAL, gain, stored_arms
from fedkin.errors import require
from fedkin.evaluate import KINDS
from fedkin.results import charts, files, metrics
from fedkin.results.record import Run


@dataclass(frozen=True)
class Trial:
    """One method with one seed, as far as it has come."""

    seed: int
    folder: Path
    asked: int  # rounds

    @property
    def run(self) -> Run:
        return Run(self.folder)

    @cached_property
    def summary(self) -> dict[str, Any] | None:
        """None until it is finished, and also when more rounds are asked for by now."""
        if not (self.folder / "summary.json").exists():
            return None
        found = self.run.summary
        if found["rounds"] < self.asked:
            return None
        counted = {"client_rounds": metrics.client_rounds(self.lines)} | found["cost"]  # older versions wrote none
        return found | {"cost": counted}

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        """Of rounds.jsonl, as far as it is written."""
        return self.run.rounds() if (self.folder / "rounds.jsonl").exists() else []

    @cached_property
    def clients(self) -> dict[str, Any]:
        """Names, and what else was written down of each client: another seed may have dealt the samples differently."""
        n = int(self.run.experiment["resolved"]["clients"])
        path = self.folder / "clients.json"
        stored: dict[str, Any] = files.read_json(path) if path.exists() else {}
        known = {key: value for key, value in stored.items() if isinstance(value, list) and len(value) == n}
        return {"names": [str(i) for i in range(n)]} | known

    @property
    def reached(self) -> int:
        """The last round there is."""
        return int(self.lines[-1]["round"]) if self.lines else 0


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
        """Over the finished seeds."""
        return metrics.merged([trial.summary for trial in self.done if trial.summary]) if self.done else None

    def values(self, kind: str, average: str) -> charts.Values:
        """Accuracies by round, of the finished seeds or, if there are none, of those begun. Rounds that not every one
        of them has are left out, for a mean over fewer seeds would jump."""
        found = []
        for trial in self.done or self.trials:
            scored = {line["round"]: line["accuracy"] for line in trial.lines if "accuracy" in line}
            points = {r: score.get(kind, {}).get(average) for r, score in scored.items()}
            found.append({r: value for r, value in points.items() if value is not None})
        return shared(found)

    def numbers(self, part: str, word: str) -> charts.Values:
        """A number that a part writes down by round ('collaborate', 'self_weight'), as in `values`."""
        seeds = [[line for line in trial.lines if part in line] for trial in self.done or self.trials]
        return shared([{x["round"]: x[part][word] for x in s if word in x[part]} for s in seeds])


def shared(found: list[dict[int, float]]) -> charts.Values:
    """The values of all seeds that have any, in the rounds that each of those has."""
    found = [points for points in found if points]
    return {r: [points[r] for points in found] for r in (found[0] if found else {}) if all(r in p for p in found)}


@dataclass(frozen=True)
class Study:
    """Everything in a folder: methods in the order in which they were asked for."""

    folder: Path
    entries: dict[str, Entry]

    @cached_property
    def experiment(self) -> dict[str, Any]:
        return next(t.run.experiment for t in self.trials if (t.folder / "experiment.json").exists())

    @property
    def trials(self) -> list[Trial]:
        return [trial for entry in self.entries.values() for trial in entry.trials]

    @cached_property
    def summaries(self) -> dict[str, dict[str, Any]]:
        """Of the methods that have a finished seed."""
        return {name: entry.summary for name, entry in self.entries.items() if entry.summary}

    @property
    def cautions(self) -> list[str]:
        """What the comparison itself found to say, when it was summarised."""
        path = self.folder / "summary.json"
        return list(files.read_json(path).get("cautions", [])) if path.exists() else []

    @cached_property
    def kinds(self) -> list[str]:
        """Of accuracy: those that any method has, in the order of the table."""
        found = [[line["accuracy"] for line in trial.lines if "accuracy" in line][-1:] for trial in self.trials]
        return [kind for kind in KINDS if any(kind in last for scores in found for last in scores)]

    @property
    def judged(self) -> str:
        """The kind of accuracy that methods are ranked by: `post`, unless that was not scored."""
        return (self.kinds or ["post"])[0]

    @property
    def preset(self) -> dict[str, Any] | None:
        """What a preset's rows came to beside the published numbers, once all are finished."""
        path = self.folder / "summary.json"
        return files.read_json(path).get("preset") if self.finished and path.exists() else None

    @cached_property
    def finished(self) -> bool:
        return all(trial.summary is not None for trial in self.trials)

    @cached_property
    def against(self) -> dict[str, Any]:
        """The verdicts against Local, if they are of these very runs: all finished, the same seeds and rounds."""
        path = self.folder / "summary.json"
        found: dict[str, Any] = files.read_json(path) if self.finished and path.exists() else {}
        stored = found.get("methods", {})
        same = ("seeds", "rounds")
        fresh = stored.keys() == self.summaries.keys() and all(
            stored[name][word] == self.summaries[name][word] for name in stored for word in same
        )
        return dict(found.get("against_local", {})) if fresh else {}

    @property
    def winners(self) -> list[str]:
        """Who may be called better than training alone."""
        return [name for name, found in self.against.items() if found["verdict"] == "better"]

    @cached_property
    def clients(self) -> dict[str, Any]:
        """Names, and the numbers of samples where they were written down."""
        begun = [t for t in self.trials if (t.folder / "experiment.json").exists()]
        return next((t for t in begun if (t.folder / "clients.json").exists()), begun[0]).clients

    @cached_property
    def gains(self) -> dict[str, np.ndarray]:
        """Post accuracy minus Local's, by method; a row a seed finished by both in as many rounds."""  # (seeds, n)
        if LOCAL not in self.entries or not self.entries[LOCAL].done:
            return {}
        alone = {(trial.seed, trial.reached) for trial in self.entries[LOCAL].done}
        result = {}
        for name, entry in self.entries.items():
            seeds = [trial.seed for trial in entry.done if (trial.seed, trial.reached) in alone]
            seeds = seeds if entry.summary and "post" in entry.summary["accuracy"] else []
            if name != LOCAL and seeds:
                result[name] = np.stack([gain(self.folder, seed, name) for seed in seeds])
        return {name: gains for name, gains in result.items() if not np.isnan(gains).all()}


def studied(folder: Path) -> Study:
    """What a folder holds, and what it was to hold by its plan, so that runs not yet begun are not forgotten."""
    begun = stored_arms(folder)
    require(begun, f"{folder} is not a run of fedkin, or its first run has not begun; there is nothing to report.")
    if begun != [folder] and (folder / "plan.json").exists():
        planned = files.read_json(folder / "plan.json")["arms"]
        found = [(e["method"]["name"], e["seed"], e["rounds"]) for e in planned]
        trials = [(name, Trial(seed, folder / name / f"seed-{seed}", rounds)) for name, seed, rounds in found]
    else:
        stored = [(path, Run(path).experiment) for path in begun]
        trials = [(e["method"]["name"], Trial(e["seed"], path, e["rounds"])) for path, e in stored]
        trials.sort(key=lambda pair: (pair[0] != LOCAL, pair[0], pair[1].seed))
    names = dict.fromkeys(name for name, _ in trials)
    return Study(folder, {name: Entry(name, tuple(t for other, t in trials if other == name)) for name in names})
