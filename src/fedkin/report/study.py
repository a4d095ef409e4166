"""What lies in the folder of a run or a comparison, finished or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedkin.errors import require
from fedkin.evaluate import KINDS
from fedkin.metrics import METRICS, Metric
from fedkin.report.findings.participation import Participation, participation_of
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.run import Run
from fedkin.runs.statistics import APART, deciding, in_line, merged
from fedkin.runs.verdict import BETTER, LOCAL, gain, is_local, side

Values = dict[int, list[float]]  # round -> a value a seed


@dataclass(frozen=True)
class Entry:
    """One method with all its seeds."""

    name: str
    runs: tuple[Run, ...]
    live: bool = False  # whether the runs are looked at while they are played

    @cached_property
    def done(self) -> list[Run]:
        return [run for run in self.runs if run.finished]

    @cached_property
    def summary(self) -> dict[str, Any] | None:
        """The numbers over the finished seeds."""
        return merged([run.summary for run in self.done]) if self.done else None

    @property
    def pictured(self) -> list[Run]:
        """The seeds that have played a round, as they are asked for pictures of single rounds: live, those at work
        first, so that the pictures show what happens now."""
        played = [run for run in self.runs if run.lines]
        return sorted(played, key=lambda run: run.finished) if self.live else played

    @property
    def drawn(self) -> Run | None:
        """The seed that pictures of single rounds show; None before the first round."""
        return next(iter(self.pictured), None)

    def scores(self, kind: str, average: str) -> Values:
        """The metric that decides by round, of the finished seeds or, if there are none, of those begun. A round that
        one of these seeds does not have is left out, because a mean over fewer seeds would jump."""
        found = []
        for run in self.done or self.runs:
            points = {x["round"]: in_line(x, run.metric).get(kind, {}).get(average) for x in run.scored}
            found.append({r: value for r, value in points.items() if value is not None})
        return in_common(found)

    def numbers(self, part: str, word: str) -> Values:
        """A number that a part writes down by round ('collaborate', 'self_weight'), of the same seeds and rounds."""
        seeds = [[line for line in run.lines if part in line] for run in self.done or self.runs]
        return in_common([{x["round"]: x[part][word] for x in s if x[part].get(word) is not None} for s in seeds])

    @cached_property
    def selected(self) -> np.ndarray:
        """The share of rounds in which each client was selected, mean over finished seeds, or those begun."""  # (n,)
        known = on_same_data([run for run in self.done or self.runs if run.lines])
        mean: np.ndarray = np.mean([run.participation["selected"] / len(run.lines) for run in known], axis=0)
        return mean


def on_same_data(runs: list[Run]) -> list[Run]:
    """Of these runs those with the first one's seed of the data: with another one the clients are others."""
    return [run for run in runs if run.data_seed == runs[0].data_seed]


def in_common(found: list[dict[int, float]]) -> Values:
    """The values of all seeds that have any, in the rounds that each of those seeds has."""
    found = [points for points in found if points]
    return {r: [points[r] for points in found] for r in (found[0] if found else {}) if all(r in p for p in found)}


@dataclass(frozen=True)
class Study:
    """Everything in a folder: methods in the order in which they were asked for."""

    folder: Path
    entries: dict[str, Entry]
    live: bool = False  # whether the page is made again and again while runs are played, and so must be small

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def runs(self) -> list[Run]:
        return [run for entry in self.entries.values() for run in entry.runs]

    @property
    def begun(self) -> list[Run]:
        return [run for run in self.runs if run.begun]

    @property
    def experiment(self) -> dict[str, Any]:
        return self.begun[0].experiment

    @cached_property
    def clients(self) -> dict[str, Any]:
        """Names, and the numbers of samples where they were written down."""
        return next((run for run in self.begun if run.lists_clients), self.begun[0]).about_clients

    @cached_property
    def drawn(self) -> dict[str, tuple[Run, Participation]]:
        """For every method that has played a round: the seed that is drawn, and who took part in it."""
        found = {name: entry.drawn for name, entry in self.entries.items()}
        return {name: (run, participation_of(run)) for name, run in found.items() if run}

    @cached_property
    def summaries(self) -> dict[str, dict[str, Any]]:
        """Of the methods that have a finished seed."""
        return {name: entry.summary for name, entry in self.entries.items() if entry.summary}

    @cached_property
    def finished(self) -> bool:
        return all(run.finished for run in self.runs)

    @cached_property
    def stored(self) -> dict[str, Any]:
        """The summary above the runs; empty if there is none."""
        return CommandFolder(self.folder).summary()

    @property
    def cautions(self) -> list[str]:
        """The warnings that the comparison wrote into its summary."""
        return list(self.stored.get("cautions", []))

    @property
    def tuned(self) -> list[str]:
        """How the methods were tuned, in sentences; none if they were not."""
        return list(self.stored.get("tuned", {}).get("sentences", []))

    @property
    def metric(self) -> Metric:
        """The metric that decides."""
        return METRICS[self.begun[0].metric]

    @cached_property
    def kinds(self) -> list[str]:
        """The kinds of models that any method was scored by, in the order of the table."""
        found = [in_line(line, run.metric) for run in self.runs for line in run.scored[-1:]]
        return [kind for kind in KINDS if any(kind in scores for scores in found)]

    @property
    def ranking_kind(self) -> str:
        """The kind of models that methods are ranked by: `post`, unless it was not scored."""
        return (self.kinds or ["post"])[0]

    @property
    def scored_rounds(self) -> list[int]:
        """The scored rounds of the first finished run."""
        run = next((entry.done[0] for entry in self.entries.values() if entry.done), None)
        return [line["round"] for line in run.scored] if run else []

    @cached_property
    def concluded(self) -> dict[str, Any]:
        """The stored summary, if it is of these very runs: all finished, the same seeds and rounds; else empty."""
        stored = self.stored.get("methods", {}) if self.finished else {}
        fresh = stored.keys() == self.summaries.keys() and all(
            stored[name][word] == self.summaries[name][word] for name in stored for word in ("seeds", "rounds")
        )
        return self.stored if fresh else {}

    @property
    def against(self) -> dict[str, Any]:
        """The verdicts against Local, if they are of these very runs."""
        return dict(self.concluded.get("against_local", {}))

    @property
    def leader(self) -> dict[str, Any]:
        """The method with the best mean, and whether it is clearly the best; empty in an older version's folder."""
        return dict(self.concluded.get("leader", {}))

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """Each method against each other one; empty in an older version's folder."""
        return list(self.concluded.get("pairs", []))

    @cached_property
    def apart(self) -> bool:
        """Whether irrelevant clients are known and kept out of the averages."""
        scored = [in_line(line, run.metric) for run in self.runs for line in run.scored[-1:]]
        return any(f"macro{APART}" in averages for found in scored for averages in found.values())

    @property
    def sites(self) -> dict[str, Any]:
        """The answer for each site, if it is of these very runs; else empty."""
        return dict(self.stored.get("sites") or {}) if self.against else {}

    @property
    def targets(self) -> list[dict[str, Any]]:
        """When each method reached the targets that were asked for; empty before all runs are finished."""
        return list(self.stored.get("targets", [])) if self.finished else []

    @cached_property
    def compared_with(self) -> dict[str, str]:
        return CommandFolder(self.folder).against()

    def alone_of(self, name: str) -> str:
        """The Local that a method is compared with."""
        return self.compared_with.get(name, LOCAL)

    @property
    def winners(self) -> list[str]:
        """The methods that may be called better than training alone, be it in one seed only."""
        return [name for name, found in self.against.items() if side(found["verdict"]) == BETTER]

    @property
    def one_seed(self) -> bool:
        """Whether the verdicts are of one seed only, and so say nothing of another one."""
        return any(found.get("seeds") == 1 for found in self.against.values())

    @cached_property
    def gains(self) -> dict[str, np.ndarray]:
        """How much better each method is than its Local, by method, (runs, n): of seeds and splits that both finished
        in as many rounds, with the first of the data's seeds."""
        alone = {
            (name, run.repetition, run.reached): run
            for name, entry in self.entries.items()
            if is_local(name)
            for run in entry.done
        }
        result = {}
        for name, entry in self.entries.items():
            scored = not is_local(name) and entry.summary and "post" in deciding(entry.summary)
            mine = on_same_data(entry.done) if scored else []
            done = [(t, (self.alone_of(name), t.repetition, t.reached)) for t in mine]
            pairs = [(t, alone[key]) for t, key in done if key in alone]
            if pairs:
                result[name] = np.stack([gain(theirs, local) for theirs, local in pairs])
        return {name: gains for name, gains in result.items() if not np.isnan(gains).all()}


def studied(folder: Path, read: Callable[..., Run] = Run, live: bool = False) -> Study:
    """Return the study of a folder. Runs that its plan names and that have not begun are in it too.

    `read` makes a run of its folder, the rounds asked for and its seed; whoever looks often may hand over one that
    remembers runs.
    """
    place = CommandFolder(folder)
    begun = place.runs()
    require(begun, f"{folder} is not a run of fedkin, or its first run has not begun; there is nothing to report.")
    if begun[0].path != folder and place.has_plan:
        planned = place.planned()
        runs = [
            (e["method"]["name"], read(run.path, e["rounds"], e["seed"], metric=e.get("metric"))) for e, run in planned
        ]
    else:
        runs = [(run.method, run) for run in (read(one.path) for one in begun)]
        runs.sort(key=lambda pair: (pair[0] != LOCAL, pair[0], pair[1].seed))
    names = dict.fromkeys(name for name, _ in runs)
    entries = {name: Entry(name, tuple(run for other, run in runs if other == name), live) for name in names}
    require(any(run.begun for _, run in runs), f"None of the runs that {folder} names has begun; nothing to report.")
    return Study(folder, entries, live)
