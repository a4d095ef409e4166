"""One model for all: the mean of the replies without the extremes, number by number (Yin et al. 2018)."""

from dataclasses import dataclass

from torch import Tensor

from fedkin.collaborate.mean import OneModel
from fedkin.collaborate.median import by_number
from fedkin.errors import require
from fedkin.parts import Reply, Sent, Slot, Task


@dataclass(frozen=True)
class TrimmedMean(OneModel):
    """Of every number the b = floor(trim n) largest and b smallest values are dropped, and the mean of the others
    taken; all replies that count at all count alike. As trim is below a half, something is always left."""

    trim: float = 0.1

    def __post_init__(self) -> None:
        require(0 <= self.trim < 0.5, f"collaborate.trim must be at least 0 and below 0.5, not {self.trim}.")

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        counted = reply.only(kept > 0)
        n = len(counted.ids)
        if not n:
            return slot
        b = int(self.trim * n + 1e-9)  # 0.29 * 100 is a hair below 29

        def inner(values: Tensor) -> Tensor:
            return values[b : n - b].double().mean(0).to(values.dtype)

        return slot | {"model": by_number(counted.upload["model"], inner)}
