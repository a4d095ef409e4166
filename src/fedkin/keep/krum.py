"""Krum and Multi-Krum (Blanchard et al. 2017): the updates that are nearest to other updates count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.geometry import distances, gram
from fedkin.core.tree import Model
from fedkin.fields import NonNegative, Rule
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Keep


def krum_scores(stacked: Model, f: int) -> Tensor:
    """The score of each of n updates: the sum of its n - f - 2 smallest squared distances to the others, or its
    smallest distance if n - f - 2 is below 1."""  # (n,)
    apart = distances(gram(stacked, list(stacked)))
    n = len(apart)
    if n == 1:
        return apart.new_zeros(1)
    others = apart.clone().fill_diagonal_(torch.inf).sort(1).values[:, :-1]  # (n, n - 1)
    return others[:, : max(1, n - f - 2)].sum(1)


@dataclass(frozen=True)
class Krum(Keep):
    """Only the update with the smallest score counts; of equal scores, that of the lowest client id.

    `f` is how many of the replies may be bad or, if it is below 1, which share of them. The paper's guarantee needs
    n >= 2 f + 3 replies.
    """

    f: Annotated[
        NonNegative,
        Rule(
            lambda v: v < 1 or float(v).is_integer(),
            "{field} is a share below 1 or a whole number, not {value}.",
            "and below 1 or whole",
        ),
    ] = 0.2  # how many of the replies may be bad or, below 1, which share of them

    def bad(self, n: int) -> int:
        """How many of n replies may be bad."""
        return min(n, int(self.f * n + 1e-9) if self.f < 1 else int(self.f))

    def chosen(self, n: int) -> int:
        """How many of n updates count."""
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
    """The n - f updates with the smallest scores count, each with weight 1."""

    def chosen(self, n: int) -> int:
        return max(1, n - self.bad(n))
