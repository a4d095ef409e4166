"""Every update counts in full."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.contract import Needs
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Keep


@dataclass(frozen=True)
class Everyone(Keep):
    """Every reply has weight 1."""

    @property
    def needs(self) -> Needs:
        return Needs()

    def __call__(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, round: int, gen: torch.Generator
    ) -> tuple[Tensor, Slot]:
        return torch.ones(len(reply.ids), dtype=torch.float64), slot
