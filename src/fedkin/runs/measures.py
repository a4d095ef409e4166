"""What clients reached in a run: the part of `Run` that knows the metrics and the predictions."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np

from fedkin import metrics
from fedkin.errors import require
from fedkin.runs import statistics
from fedkin.runs.stored import Stored

Unit = Literal["uploads", "downloads", "bytes_up", "bytes_down", "client_rounds"]


class Measures(Stored):
    """The metrics of a run: of all clients in every scored round, and which of them decides."""

    @property
    def task(self) -> str:
        """What is learned: to "classify", or to "regress" where the targets are numbers."""
        return str(self.experiment["resolved"].get("task", "classify"))

    @cached_property
    def metric(self) -> str:
        """The metric that decides whether a client is better off."""
        return metrics.deciding(self.experiment.get("metric"), self.task)

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes' names; empty if they have none."""
        return tuple(self.experiment["resolved"].get("labels") or ())

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What summary.json says of the whole run."""
        found = self.files.summary()
        counted = (
            {"client_rounds": statistics.client_rounds(self.lines)} if "client_rounds" not in found["cost"] else {}
        )
        found |= {"cost": counted | found["cost"]}  # older versions did not count client-rounds
        other = self.metric != found.get("metric", "accuracy")  # all metrics are there, and another one may decide now
        if not other:
            return found
        irrelevant = self.files.clients().get("irrelevant")
        return found | statistics.decided(self.lines, self.last(), self.metric, irrelevant)

    @property
    def scored(self) -> list[dict[str, Any]]:
        """The rounds that were scored."""
        return [line for line in self.lines if statistics.is_scored(line)]

    def accuracy(self, kind: str) -> np.ndarray:
        """Return the accuracies of every client, a row for each scored round."""  # (scored rounds, n) float64
        return self.values("accuracy", kind)

    def values(self, metric: str, kind: str) -> np.ndarray:
        """Return a metric of every client, a row for each scored round."""  # (scored rounds, n) float64
        label = metrics.named(metric).label
        require(self.files.has_values(metric, kind), f"This run has no {label} of the kind '{kind}' of every client.")
        scored = sum(kind in statistics.in_line(line, metric) for line in self.scored)
        return whole_rows(self.files.values(metric, kind), self.n)[:scored]  # a run at work, or killed, may have more

    @cached_property
    def measured(self) -> dict[str, dict[str, np.ndarray]]:
        """The last value of every client by metric and kind."""  # (n,) each
        last = self.scored[-1] if self.scored else {}
        found = {metric: statistics.in_line(last, metric) for metric in statistics.metrics_in([last])}
        return {
            metric: {kind: self.values(metric, kind)[-1] for kind in kinds if "/" not in kind and kind != "test"}
            for metric, kinds in found.items()
        }

    def last(self, metric: str | None = None) -> dict[str, np.ndarray]:
        """Return the last value of every client by kind, of a metric or of the one that decides."""  # (n,) each
        name = self.metric if metric is None else metrics.named(metric).name
        older = f"This run has no {metrics.named(name).label}: a version wrote it that did not measure it."
        require(name in self.measured or not self.scored, older)
        return self.measured.get(name, {})

    @cached_property
    def accuracies(self) -> dict[str, np.ndarray]:
        """The last accuracy of every client by kind; empty where the targets are numbers."""  # (n,) each
        return self.measured.get("accuracy", {})

    @cached_property
    def predictions(self) -> dict[str, np.ndarray] | None:
        """What the final models say of the test samples; None where it was not kept, as in an older version.

        A row for each test sample, client after client: "rows" (its place in the federation's samples), "client" and
        "y", (R,) each; "post", the outputs of the client's personal model, and "global", those of the common model,
        (R, outputs) each, where they were scored.
        """
        stored = self.files.predictions()
        return None if stored is None else {name: value.numpy() for name, value in stored.items()}

    def rounds_to(self, target: float, kind: str = "global", average: str = "micro") -> int | None:
        """Return the first round at which the mean of five rounds is above the target; needs evaluate_every=1."""
        return statistics.rounds_to(target, statistics.every_round(self.lines, kind, average))

    def cost_to(
        self, target: float, kind: str = "global", average: str = "micro", unit: Unit = "uploads"
    ) -> float | None:
        """Return what was sent until the target was reached, with that round and what was sent before round 1.

        The unit is models or bytes, up or down; or, as the papers count, one unit a client and round, however much the
        client sent ("client_rounds").
        """
        names = ("uploads", "downloads", "bytes_up", "bytes_down")
        require(unit in (*names, "client_rounds"), f"A cost's unit is client_rounds or one of {names}, not '{unit}'.")
        each = [float(line["replied" if unit == "client_rounds" else unit]) for line in self.lines]
        found = statistics.cost_to(target, statistics.every_round(self.lines, kind, average), each)
        return None if found is None else found + self.summary["cost"][unit] - sum(each)


def whole_rows(values: np.ndarray, n: int) -> np.ndarray:
    """Return an array as rows of n values, without a last row that is only written in part."""  # (rows, n)
    return values[: len(values) // n * n].reshape(-1, n)
