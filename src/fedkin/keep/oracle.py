"""The truth as a filter: what any filter of irrelevant clients can reach at best."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.errors import require
from fedkin.parts import Keep, Reply, Sent, Slot, Task


@dataclass(frozen=True)
class Oracle(Keep):
    """The updates of irrelevant clients do not count. The only part that is told who they are."""

    told = True

    def init(self, task: Task, gen: torch.Generator) -> Slot:
        require(
            task.irrelevant is not None,
            "An oracle needs data in which it is known who is irrelevant; add --irrelevant, as in flip:0.2.",
        )
        return {}

    def __call__(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, round: int, gen: torch.Generator
    ) -> tuple[Tensor, Slot]:
        assert task.irrelevant is not None
        return (~task.irrelevant[reply.ids]).double(), slot
