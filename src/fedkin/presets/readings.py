"""What a cell of a preset reads of a finished run: one number, and the same number over the rounds for a curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedkin.runs import statistics
from fedkin.runs.run import Run

KINDS = {
    "post": "each client's model after local training",
    "global": "the common model on the clients' test samples",
    "recv": "what each client just received",
    "test": "the common model on the common test set",
    "post-w": "the model that each client uploads",
}
STATISTICS = {
    "last": "last round",
    "last10": "mean of the last ten scored rounds",
    "best": "best scored round",
    "validated": "round that is best by validation",
}
AVERAGES = {"macro": "mean over clients", "micro": "pooled over samples"}


class Reading:
    """A number of a finished run."""

    over: tuple[str, str] | None = None  # the row and column of the cell whose mean the reading needs as its base

    def read(self, run: Run, base: float | None = None) -> float | None:
        """Return the number; None where the run has none."""
        raise TypeError(f"{type(self).__name__} does not say what it reads")

    def series(self, run: Run) -> dict[int, float]:
        """Return the number by round, for a curve."""
        return {}

    @property
    def words(self) -> str:
        """What the number is."""
        raise TypeError(f"{type(self).__name__} does not say what it is")


@dataclass(frozen=True)
class Score(Reading):
    """A metric of a kind of model, averaged over clients; accuracies are in percent."""

    kind: str = "post"
    average: str = "macro"
    statistic: str = "last"
    metric: str = "accuracy"

    @property
    def factor(self) -> float:
        return 100.0 if self.metric in ("accuracy", "balanced_accuracy") else 1.0

    def read(self, run: Run, base: float | None = None) -> float | None:
        found = statistics.of_metric(run.summary, self.metric)[self.kind][self.average][self.statistic]
        return None if found is None else self.factor * found

    def series(self, run: Run) -> dict[int, float]:
        found = {line["round"]: statistics.in_line(line, self.metric).get(self.kind, {}) for line in run.scored}
        return {r: self.factor * value for r, of in found.items() if (value := of.get(self.average)) is not None}

    @property
    def words(self) -> str:
        over = "" if self.kind == "test" else f", {AVERAGES[self.average]}"
        unit = " in %" if self.factor == 100 else ""
        return f"{self.metric.replace('_', ' ')}{unit} of {KINDS[self.kind]}{over}, {STATISTICS[self.statistic]}"


@dataclass(frozen=True)
class ClientScore(Reading):
    """The last accuracy of one client, or another metric from 0 to 1, in percent."""

    client: int
    kind: str = "post"
    metric: str = "accuracy"

    def read(self, run: Run, base: float | None = None) -> float | None:
        value = float(run.last(self.metric)[self.kind][self.client])
        return 100.0 * value if np.isfinite(value) else None

    @property
    def words(self) -> str:
        return f"{self.metric.replace('_', ' ')} in % of {KINDS[self.kind]}, last round"


@dataclass(frozen=True)
class Spread(Reading):
    """The standard deviation of the clients' accuracies in the last round, in points."""

    kind: str = "post"

    def read(self, run: Run, base: float | None = None) -> float | None:
        found = run.summary["fairness"][self.kind]["std_clients"]
        return None if found is None else 100.0 * float(found)

    @property
    def words(self) -> str:
        return f"standard deviation over clients of the accuracy of {KINDS[self.kind]}, in points, last round"


@dataclass(frozen=True)
class Steadiness(Reading):
    """The standard deviation of the accuracy over the last rounds, in points."""

    kind: str = "test"

    def read(self, run: Run, base: float | None = None) -> float | None:
        found = run.summary["stability"].get(self.kind)
        return None if found is None else 100.0 * float(found)

    @property
    def words(self) -> str:
        return f"standard deviation over the last {statistics.TAIL} rounds of the accuracy of {KINDS[self.kind]}"


@dataclass(frozen=True)
class Observed(Reading):
    """A number that rounds record beyond accuracies: of the filter, of training losses, of gap and skew."""

    group: str
    name: str
    statistic: str = "last10"

    def read(self, run: Run, base: float | None = None) -> float | None:
        found = run.summary.get("observed", {}).get(self.group, {}).get(self.name, {}).get(self.statistic)
        return None if found is None else float(found)

    def series(self, run: Run) -> dict[int, float]:
        found = {line["round"]: line[self.group].get(self.name) for line in run.lines if self.group in line}
        return {r: float(value) for r, value in found.items() if value is not None}

    @property
    def words(self) -> str:
        known = {
            ("filter", "auc"): "AUC of the clients' divergence: irrelevant against relevant ones",
            ("filter", "precision"): "precision of the filter",
            ("filter", "recall"): "recall of the filter",
            ("train", "relevant_loss"): "training loss of the relevant clients",
        }
        what = known.get((self.group, self.name), f"{self.group} {self.name}")
        return f"{what}, {STATISTICS[self.statistic].replace('scored ', '')}"


@dataclass(frozen=True)
class Reaches(Reading):
    """How many rounds, or model uploads, pass until the mean of five rounds is above a target in percent.

    With `over` the target is so much above what that cell reaches on average.
    """

    target: float
    unit: str = "rounds"  # or "client_rounds", the papers' cost
    kind: str = "test"
    over: tuple[str, str] | None = None

    def read(self, run: Run, base: float | None = None) -> float | None:
        if self.over is not None and base is None:
            return None
        target = (self.target + (base or 0.0)) / 100.0
        if self.unit == "rounds":
            return run.rounds_to(target, self.kind)
        return run.cost_to(target, self.kind, unit="client_rounds")

    @property
    def words(self) -> str:
        what = "rounds" if self.unit == "rounds" else "model uploads"
        more = f" + {self.target:g} points" if self.target else ""
        target = f"{self.target:g} %" if self.over is None else f"the last ten rounds of {self.over[0]}{more}"
        return f"{what} until the mean of five rounds is above {target}"
