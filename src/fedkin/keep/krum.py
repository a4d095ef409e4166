"""Krum and Multi-Krum (Blanchard et al. 2017): the updates with the nearest neighbours count."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.collaborate.mixing import distances, gram
from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.parts import Keep, Reply, Sent, Slot, Task


def krum_scores(stacked: Model, f: int) -> Tensor:
    """The sum of each one's n - f - 2 smallest squared distances to the others; at least the nearest counts."""  # (n,)
    apart = distances(gram(stacked, list(stacked)))
    n = len(apart)
    if n == 1:
        return apart.new_zeros(1)
    others = apart.clone().fill_diagonal_(torch.inf).sort(1).values[:, :-1]  # (n, n - 1)
    return others[:, : max(1, n - f - 2)].sum(1)


@dataclass(frozen=True)
class Krum(Keep):
    """Only the update with the best score counts. `f`: how many of the replies may be bad, or, below 1, which share of
    them. The guarantee needs n >= 2 f + 3 replies. Ties: the first client."""

    f: float = 0.2

    def __post_init__(self) -> None:
        require(self.f >= 0, f"keep.f cannot be negative, and is {self.f}.")
        require(self.f < 1 or float(self.f).is_integer(), f"keep.f is a share below 1 or a whole number, not {self.f}.")

    def bad(self, n: int) -> int:
        return min(n, int(self.f * n + 1e-9) if self.f < 1 else int(self.f))

    def chosen(self, n: int) -> int:
        """How many updates count."""
        return 1

    def __call__(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, round: int, gen: torch.Generator
    ) -> tuple[Tensor, Slot]:
        n = len(reply.ids)
        updates = tree.update(sent.to(reply.ids)["model"], reply.upload["model"])
        best = krum_scores(updates, self.bad(n)).cpu().argsort(stable=True)[: self.chosen(n)]
        return torch.zeros(n, dtype=torch.float64).index_fill(0, best, 1.0), slot


@dataclass(frozen=True)
class MultiKrum(Krum):
    """The n - f updates with the best scores count, all alike."""

    def chosen(self, n: int) -> int:
        return max(1, n - self.bad(n))
