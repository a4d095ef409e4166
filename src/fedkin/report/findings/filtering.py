"""Whose updates a filter left out, how relevant each client seemed to it, and how often it was right."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedkin.report.findings.participation import Participation, mean_of
from fedkin.runs.run import Run

BARS = 500  # clients up to which each has a bar; more are drawn as groups of clients
POINTS = 400  # rounds up to which the filter's quality is drawn as it is; of more, means are drawn


@dataclass(frozen=True)
class Filtering:
    """One run of a method that may leave updates out."""

    clients: Participation
    divergence: dict[int, np.ndarray]  # by recorded round, scaled to [0, 1] over clients; nan where it is not known
    quality: dict[int, dict[str, float | None]]  # of the filter, by round; empty where the truth is not known

    @cached_property
    def mean(self) -> np.ndarray:
        """Each client's divergence, mean over the recorded rounds."""  # (n,)
        return mean_of(np.stack(list(self.divergence.values())), 0)

    @cached_property
    def last(self) -> np.ndarray:
        """Each client's divergence in the last recorded round."""  # (n,)
        return self.divergence[max(self.divergence)]

    @cached_property
    def out(self) -> np.ndarray:
        """The share of the rounds with a reply in which the client's update did not count."""  # (n,)
        replied = self.clients.replied
        return np.where(replied > 0, self.clients.left_out / np.maximum(replied, 1), np.nan)

    @cached_property
    def groups(self) -> list[np.ndarray]:
        """The clients that share a bar."""
        return self.clients.groups(BARS)

    @property
    def rounds_a_point(self) -> int:
        """How many rounds a point of the filter's quality stands for."""
        return -(-len(self.quality) // POINTS)

    def verdicts(self, round: int) -> tuple[np.ndarray, np.ndarray]:
        """Which of the clients that replied in this round are irrelevant, and which were left out."""  # (k,), (k,)
        assert self.clients.irrelevant is not None
        assert self.clients.kept is not None
        ids, kept = self.clients.ids[round - 1], self.clients.kept[round - 1]
        replied = ~np.isnan(kept)
        return self.clients.irrelevant[ids[replied]], kept[replied] == 0


def filtering_of(run: Run, clients: Participation) -> Filtering | None:
    """None if every update counted and no filter gave a divergence."""
    found = {r: scaled(values.astype(float)) for r, values in run.marks("keep", "divergence").items()}
    known = {r: values for r, values in found.items() if np.isfinite(values).any()}
    quality = {line["round"]: line["filter"] for line in run.lines if line.get("filter")}
    return Filtering(clients, known, quality) if known or clients.left_out.any() else None


def scaled(values: np.ndarray) -> np.ndarray:
    """From 0 for the least divergent client to 1 for the most; nan where a value is not finite."""
    known = np.isfinite(values)
    if not known.any():
        return np.full_like(values, np.nan)
    low, high = float(values[known].min()), float(values[known].max())
    return np.where(known, (values - low) / (high - low) if high > low else 0.0, np.nan)
