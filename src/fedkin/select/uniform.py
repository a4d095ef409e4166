"""Clients are drawn uniformly."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.errors import require
from fedkin.fields import Count, Fraction
from fedkin.messages import Slot, Task
from fedkin.parts import Select
from fedkin.select.schedule import whole


@dataclass(frozen=True)
class Uniform(Select):
    """`count` clients, or a `fraction` of all, without replacement; each client is as likely as any other."""

    count: Count | None = None  # how many clients take part in a round; null: see fraction
    fraction: Fraction | None = None  # the share of the clients that takes part in a round; null: see count

    def check(self) -> None:
        require(
            (self.count is None) != (self.fraction is None),
            "Uniform takes either count or fraction; set one, and the other to null.",
        )

    def size(self, n: int) -> int:
        """How many of n clients are drawn."""
        return min(self.count, n) if self.count is not None else whole(self.fraction or 1.0, n)

    def share(self, task: Task) -> float:
        return self.size(task.n) / task.n

    def __call__(self, slot: Slot, task: Task, round: int, gen: torch.Generator) -> tuple[Tensor, Slot]:
        k = self.size(task.n)
        if k == task.n:
            return torch.arange(task.n), slot
        return torch.randperm(task.n, generator=gen)[:k].sort().values, slot
