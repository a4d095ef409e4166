"""One model for all; among the ways to make it, the weighted mean of what was uploaded and kept (WAVG)."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.parts import Collaborate, Reply, Sent, Slot, Task


class OneModel(Collaborate):
    """The server holds one model and sends it to all; what is made of the replies, a part says in `receive`."""

    def init(self, task: Task) -> Slot:
        return {"model": task.model}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        return Sent(ids, shared={"model": slot["model"]}), slot

    def model(self, slot: Slot) -> Model:
        model: Model = slot["model"]
        return model


@dataclass(frozen=True)
class Mean(OneModel):
    """W <- (1 - beta) W + beta sum_i w_i W_i / sum_i w_i over the replies, w_i = n_i kept_i, or kept_i alone with
    `weights="uniform"`. beta is pFedMe's; 1 is the plain mean. With nobody left the old model stays.
    """

    weights: Literal["size", "uniform"] = "size"
    beta: float = 1.0

    def __post_init__(self) -> None:
        require(
            self.weights in ("size", "uniform"), f"collaborate.weights is 'size' or 'uniform', not '{self.weights}'."
        )

        require(self.beta > 0, f"collaborate.beta must be positive, not {self.beta}.")

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        weight = kept * reply.report["size"] if self.weights == "size" else kept
        if not weight.sum() > 0:
            return slot
        mean = tree.weighted(reply.upload["model"], weight)
        if self.beta != 1:
            mean = tree.added(slot["model"], tree.update(slot["model"], mean), self.beta)
        return slot | {"model": mean}
