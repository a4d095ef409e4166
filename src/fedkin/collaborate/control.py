"""SCAFFOLD's server: one common model and one common control variate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from torch import Tensor

from fedkin.collaborate.mean import Mean
from fedkin.contract import Gives
from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.fields import Positive, Rule
from fedkin.messages import Reply, Sent, Slot, Task


@dataclass(frozen=True)
class Control(Mean):
    """W <- W + eta_g mean(y_i - W);  c <- c + |S| / N mean(change of c_i).

    Both means are over the replies S that count, each with the same weight; N is the number of all clients. `beta` is
    the paper's eta_g.
    """

    weights: Literal["size", "uniform"] = "uniform"  # replies count alike; "size" is not SCAFFOLD's
    beta: Annotated[
        Positive, Rule(lambda v: v <= 2, "{field}, SCAFFOLD's eta_g, above 2 diverges; it is {value}.", "and at most 2")
    ] = 1.0  # how far the server goes towards the mean: the paper's eta_g

    @property
    def gives(self) -> Gives:
        return replace(super().gives, models=("control",))

    def init(self, task: Task) -> Slot:
        return super().init(task) | {"control": tree.zeros(task.model)}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        return Sent(ids, shared={"model": slot["model"], "control": slot["control"]}), slot

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        if not kept.sum() > 0:
            return slot
        change = reply.mean("control", kept)
        control = tree.added(slot["control"], change, float(kept.sum()) / task.n)
        return super().receive(slot, task, sent, reply, kept) | {"control": control}
