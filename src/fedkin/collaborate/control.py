"""SCAFFOLD's server: one model, and one control variate for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from fedkin.collaborate.mean import Mean
from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.parts import Reply, Sent, Slot, Task


@dataclass(frozen=True)
class Control(Mean):
    """W <- W + eta_g mean(y_i - W);  c <- c + |S| / N mean(change of c_i), both means over the replies and uniform."""

    weights: Literal["size", "uniform"] = "uniform"
    beta: float = 1.0  # eta_g of the paper

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.beta <= 2, f"collaborate.beta, SCAFFOLD's eta_g, above 2 diverges; it is {self.beta}.")

    def init(self, task: Task) -> Slot:
        return super().init(task) | {"control": tree.zeros(task.model)}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        return Sent(ids, shared={"model": slot["model"], "control": slot["control"]}), slot

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        if not kept.sum() > 0:
            return slot
        change = tree.weighted(reply.upload["control"], kept)
        control = tree.added(slot["control"], change, float(kept.sum()) / task.n)
        return super().receive(slot, task, sent, reply, kept) | {"control": control}
