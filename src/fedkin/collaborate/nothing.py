"""Nothing is exchanged."""

from dataclasses import dataclass

from torch import Tensor

from fedkin.contract import Gives
from fedkin.core.tree import Model
from fedkin.messages import Sent, Slot, Task
from fedkin.parts import Collaborate


@dataclass(frozen=True)
class Nothing(Collaborate):
    """Every client trains its own model alone."""

    @property
    def gives(self) -> Gives:
        return Gives(replies=False, own_model=True)

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        return Sent(ids[:0]), slot
