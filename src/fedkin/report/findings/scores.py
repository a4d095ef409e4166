"""The score that a selection gives to every client: AdaFL's attention, Active FL's values, Shapley values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedkin.report.findings.participation import Participation
from fedkin.runs.run import Run

WIDE = 20  # the largest score over the smallest, from which the scale is logarithmic


@dataclass(frozen=True)
class Scale:
    """What a selection's score is called, and the unit it is shown in."""

    title: str
    meaning: str
    unit: float = 1.0


def scale_of(selection: str, n: int) -> Scale:
    """The scale of a selection part, by the part's name in the experiment."""
    if selection == "Attention":
        text = "A client's score is its chance of being drawn; 1 is an even share, that of a draw without preference."
        return Scale("chance, even share = 1", text, 1 / n)
    if selection == "Active":
        text = "A client's value is its loss times the root of its number of samples; high values are drawn more often."
        return Scale("value: loss × √samples", text)
    if selection == "Shapley":
        text = "A client's value is what it added to the validation accuracy; high values are drawn more often."
        return Scale("Shapley value", text)
    return Scale("score", "Larger scores are drawn more often.")


@dataclass(frozen=True)
class Scores:
    """The scores of one run, in the rounds in which they were stored."""

    clients: Participation
    scale: Scale
    rounds: list[int]
    values: np.ndarray  # (rounds, n), nan where a score is not known

    @property
    def wide(self) -> bool:
        """Whether the scores need a logarithmic scale."""
        low, high = float(np.nanmin(self.values)), float(np.nanmax(self.values))
        return low > 0 and high >= WIDE * low


def scores_of(run: Run, clients: Participation) -> Scores | None:
    """None if the selection gives no scores."""
    found = run.marks("select", "score")
    scale = scale_of(str(run.experiment["method"]["select"]["is"]), clients.n)
    known = {r: np.where(np.isfinite(found[r]), found[r] / scale.unit, np.nan) for r in sorted(found)}
    known = {r: values for r, values in known.items() if not np.isnan(values).all()}
    return Scores(clients, scale, list(known), np.stack(list(known.values()))) if known else None
