"""Who learns from whom: the stored mixtures of one run, and an order of the clients that puts alike ones together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedkin.messages import Kin
from fedkin.report.study import Entry
from fedkin.runs.run import Run

ORDERED = 2000  # clients up to which they are ordered by their classes, which takes the square of their number


@dataclass(frozen=True)
class Kinship:
    """The mixtures of one run, in the rounds in which they were stored."""

    run: Run
    stored: dict[int, Kin]

    @property
    def clients(self) -> dict[str, Any]:
        return self.run.about_clients

    @cached_property
    def labels(self) -> np.ndarray | None:
        """Training samples of each class, where they were written down."""  # (n, classes)
        found = self.clients.get("labels")
        return np.array(found, dtype=float) if found and len(found[0]) else None

    @cached_property
    def majority(self) -> np.ndarray | None:
        """Each client's most frequent class; -1 without samples."""  # (n,)
        if self.labels is None:
            return None
        return np.where(self.labels.sum(1) > 0, self.labels.argmax(1), -1)

    @cached_property
    def order(self) -> list[int]:
        """Clients with like shares of classes side by side; by number where the classes were not written down, and
        where there are very many."""
        return list(range(self.n)) if self.labels is None or self.n > ORDERED else alike(self.labels)

    @property
    def n(self) -> int:
        return len(self.clients["names"])

    @property
    def crowded(self) -> bool:
        """Whether so many clients were in a round that only the largest weights of each were stored."""
        return any(kin.nearest for kin in self.stored.values())

    @cached_property
    def components(self) -> list[str]:
        """The names of the components, sorted so that 10 comes after 9. Files do not keep the order of the model."""
        return sorted(self.stored[self.rounds[-1]].weights, key=natural)

    @property
    def rounds(self) -> list[int]:
        return sorted(self.stored)

    @property
    def word(self) -> str:
        """What a component is called."""
        found = self.run.experiment["method"].get("collaborate", {}).get("granularity")
        return found if found in ("layer", "tensor") else "component"

    def title(self, component: str) -> str:
        return "whole model" if component == "model" else f"{self.word} {component}"

    @cached_property
    def late(self) -> list[int]:
        """The last quarter of the stored rounds. The sentences are of these, because one round has few clients."""
        return self.rounds[-max(1, len(self.rounds) // 4) :]


def kinship(entry: Entry) -> Kinship | None:
    """The first seed of a method that stored mixtures; None if the method gives clients no mixtures of their own."""
    for run in entry.pictured:
        if stored := run.kin():
            return Kinship(run, stored)
    return None


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts the numbers in names as numbers."""
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", name)]


def alike(labels: np.ndarray) -> list[int]:
    """All clients, those with like shares of classes side by side. The order is that of the leaves of a tree, built by
    average linkage on Hellinger's distance and turned so that neighbours are close. Clients without samples come last.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import pdist

    have = np.flatnonzero(labels.sum(1) > 0)
    without = np.flatnonzero(labels.sum(1) == 0)
    if len(have) > 2:
        roots = np.sqrt(labels[have] / labels[have].sum(1, keepdims=True))
        leaves = leaves_list(linkage(pdist(roots) / np.sqrt(2), "average", optimal_ordering=True))
        first = int(leaves[0] > leaves[-1])  # either direction is as good: the one that begins with the lower number
        have = have[leaves[::-1] if first else leaves]
    return [*have.tolist(), *without.tolist()]


def own_column(kin: Kin) -> np.ndarray:
    """The column of each client's own model."""  # (m,)
    return np.searchsorted(kin.sources.numpy(), kin.ids.numpy())


def own_and_others(kin: Kin, component: str) -> tuple[np.ndarray, np.ndarray]:
    """Each client's weight on its own model, and its weights on others (zero at its own)."""  # (m,), (m, s)
    weights = kin.weights[component].double().numpy()
    at = np.arange(len(weights)), own_column(kin)
    others = weights.copy()
    others[at] = 0
    return weights[at], others
