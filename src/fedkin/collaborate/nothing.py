"""Nothing is exchanged: every client trains alone."""

from dataclasses import dataclass

from torch import Tensor

from fedkin.core.tree import Model
from fedkin.parts import Collaborate, Sent, Slot, Task


@dataclass(frozen=True)
class Nothing(Collaborate):
    own = True
    listens = False

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        return Sent(ids[:0]), slot
