"""kin's server: the mean of the common model, of its shadows, and of the weights that clients give their experts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from fedkin.collaborate.mean import Mean
from fedkin.contract import Gives
from fedkin.core.tree import Model
from fedkin.fields import Count
from fedkin.messages import Reply, Sent, Slot, Task


@dataclass(frozen=True)
class MeanOfExperts(Mean):
    """W <- mean of W_i, and W_-f <- mean of the shadows W_i,-f, by size;  m <- mean of the clients' weights pi_i.

    A shadow is the model that clients train without the samples of one fold of theirs. `crossed` is how many there are.
    """

    crossed: Count = 1  # how many shadows the common model has

    @property
    def shadows(self) -> tuple[str, ...]:
        return tuple(f"without {fold + 1}" for fold in range(self.crossed))

    @property
    def gives(self) -> Gives:
        return replace(super().gives, models=(*self.shadows, "mix"))

    def init(self, task: Task) -> Slot:
        return super().init(task) | dict.fromkeys(self.shadows, task.model)

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        return Sent(ids, shared=dict(slot)), slot

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        weight = kept * reply.report["size"] if self.weights == "size" else kept
        if not weight.sum() > 0:
            return slot
        shadows = {name: reply.mean(name, weight) for name in self.shadows}
        return super().receive(slot, task, sent, reply, kept) | shadows | {"mix": reply.mean("mix", kept)}
