"""One common model: the weighted mean of what was uploaded and kept."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.fields import Positive
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Collaborate


class OneModel(Collaborate):
    """The server holds one model and sends it to all selected clients. A subclass makes the next model in `receive`."""

    def init(self, task: Task) -> Slot:
        return {"model": task.model}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        return Sent(ids, shared={"model": slot["model"]}), slot

    def model(self, slot: Slot) -> Model:
        model: Model = slot["model"]
        return model


@dataclass(frozen=True)
class Mean(OneModel):
    """W <- (1 - beta) W + beta sum_i w_i W_i / sum_i w_i over the replies i, with w_i = n_i kept_i, or w_i = kept_i if
    `weights="uniform"`.

    beta is from pFedMe; with beta = 1 it is the plain mean. If no reply counts, the model stays as it is.
    """

    weights: Literal["size", "uniform"] = (
        "size"  # whether a reply counts by its client's number of samples, or all alike
    )
    beta: Positive = 1.0  # how far the server goes towards the mean; from pFedMe

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        weight = kept * reply.report["size"] if self.weights == "size" else kept
        if not weight.sum() > 0:
            return slot
        mean = reply.mean("model", weight)
        if self.beta != 1:
            mean = tree.added(slot["model"], tree.update(slot["model"], mean), self.beta)
        return slot | {"model": mean}
