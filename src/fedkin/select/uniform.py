"""Distinct clients, each as likely as any other."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.errors import require
from fedkin.parts import Select, Slot, Task
from fedkin.select.schedule import whole


@dataclass(frozen=True)
class Uniform(Select):
    """SAMPLE_UNIFORM: `count` clients, or a `fraction` of them, without replacement."""

    count: int | None = None
    fraction: float | None = None

    def __post_init__(self) -> None:
        require(
            (self.count is None) != (self.fraction is None),
            "Uniform takes either count or fraction; set one, and the other to null.",
        )
        require(self.count is None or self.count >= 1, f"select.count must be at least 1, not {self.count}.")
        require(
            self.fraction is None or 0 < self.fraction <= 1,
            f"select.fraction must be above 0 and at most 1, not {self.fraction}.",
        )

    def size(self, n: int) -> int:
        return min(self.count, n) if self.count is not None else whole(self.fraction or 1.0, n)

    def share(self, task: Task) -> float:
        return self.size(task.n) / task.n

    def __call__(self, slot: Slot, task: Task, round: int, gen: torch.Generator) -> tuple[Tensor, Slot]:
        k = self.size(task.n)
        if k == task.n:
            return torch.arange(task.n), slot
        return torch.randperm(task.n, generator=gen)[:k].sort().values, slot
