"""Every update counts in full."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.parts import Keep, Reply, Sent, Slot, Task


@dataclass(frozen=True)
class Everyone(Keep):
    judges = False

    def __call__(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, round: int, gen: torch.Generator
    ) -> tuple[Tensor, Slot]:
        return torch.ones(len(reply.ids), dtype=torch.float64), slot
