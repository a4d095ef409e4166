"""The truth as a filter: no filter of irrelevant clients can do better than this one."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.contract import Needs
from fedkin.errors import require
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Keep


@dataclass(frozen=True)
class Oracle(Keep):
    """The updates of irrelevant clients do not count. No other part is told who is irrelevant."""

    @property
    def needs(self) -> Needs:
        return Needs(replies=True, truth=True)

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
