"""What a run in progress remembers of its rounds, and the summary that is made of it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from torch import Tensor

from fedkin.metrics import METRICS
from fedkin.runs import statistics
from fedkin.runs.callback import Callback, Record
from fedkin.runs.experiment import Experiment
from fedkin.runs.facts import scored_words
from fedkin.runs.run import Run
from fedkin.runs.spent import spent


class History(Callback):
    """The lines of all rounds, the clients' last values and participation, and the seconds spent."""

    def __init__(self, n: int):
        self.lines: list[dict[str, Any]] = []
        self.measured: dict[str, dict[str, np.ndarray]] = {}  # by metric and kind, of the last scored round; (n,) each
        self.participation = statistics.no_participation(n)
        self.before: dict[str, float] = {}  # what was sent before round 1
        self.time = {"train_s": 0.0, "mix_s": 0.0, "evaluate_s": 0.0, "total_s": 0.0}
        self.began = time.monotonic()

    def restore(self, stored: Run, spent: dict[str, float]) -> None:
        """Go on from what lies in the folder of a run, in which so many seconds were spent."""
        self.time, self.began = dict(spent), self.began - spent["total_s"]
        self.lines, self.participation = stored.lines, stored.participation
        if self.lines and statistics.is_scored(self.lines[-1]):
            self.measured = stored.measured

    def recorded(self, record: Record) -> None:
        self.lines.append(record.line)
        statistics.add_participation(self.participation, record.selected, record.weights)
        if record.scores is not None:
            each = {kind: score for kind, score in record.scores.items() if "/" not in kind and kind != "test"}
            names = [name for name in METRICS if any(name in score.values for score in each.values())]
            self.measured = {name: {kind: s.values[name].numpy() for kind, s in each.items()} for name in names}

    def add_time(self, seconds: dict[str, float]) -> None:
        for name, value in seconds.items():
            self.time[name] += value

    def time_now(self) -> dict[str, float]:
        """Return the seconds spent so far, by what they were spent on."""
        self.time["total_s"] = time.monotonic() - self.began
        return self.time

    def summary(
        self,
        experiment: Experiment,
        about: dict[str, Any],
        reached: int,
        every: int,
        metric: str,
        irrelevant: Tensor | None = None,
    ) -> dict[str, Any]:
        """Return what summary.json says of a run that has reached this round; `metric` is the one that decides.

        irrelevant: who is not in the averages, (n,) bool, where that is known. A history does not keep it, because
        parts can reach callbacks by way of the progress they tell.
        A scored round that was the last of a shorter run, and is off the cadence, does not enter the statistics.
        """
        regular = [line for line in self.lines if line["round"] % every == 0 or line["round"] == reached]
        others = [name for name in statistics.metrics_in(regular) if name != "accuracy"]
        apart = None if irrelevant is None else irrelevant.tolist()
        return {
            "method": experiment.method.name,
            **({"scored": said} if (said := scored_words(about["resolved"])) else {}),
            "accuracy": statistics.measured(regular),
            "metrics": {name: statistics.measured(regular, name) for name in others},
            **statistics.decided(regular, self.measured.get(metric, {}), metric, apart),
            "observed": statistics.other_numbers(self.lines),
            **({} if (dp := experiment.privacy) is None else {"privacy": spent(dp, self.participation["replied"])}),
            "cost": statistics.cost(self.lines, self.before),
            "time": {name: round(value, 3) for name, value in self.time_now().items()},
            "rounds": reached,
            "evaluate_every": every,
            "dropped": sum(len(line.get("dropped", [])) for line in self.lines),
            "never_selected": int((self.participation["selected"] == 0).sum()),
            "seeds": [experiment.seed],
            "splits": [int(about["data"].get("split") or 0)],
            "data_seeds": [int(about["data"].get("seed") or 0)],
            "runs": 1,
            "experiment": about,
        }


def averaged_apart(lines: list[dict[str, Any]]) -> bool:
    """Whether the averages of scored rounds keep irrelevant clients apart, as older versions did not; also where no
    round is scored yet."""
    scored = [statistics.in_line(line, metric) for line in lines for metric in statistics.metrics_in([line])[:1]]
    names = [name for found in scored for kind, averages in found.items() if kind != "test" for name in averages]
    return not names or any(name.endswith(statistics.APART) for name in names)
