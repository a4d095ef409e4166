"""IFCA's server: several models, each the mean of the clients that chose it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedkin.collaborate.bipartition import learned
from fedkin.contract import Gives
from fedkin.core import tree
from fedkin.core.rng import generator
from fedkin.core.tree import Model
from fedkin.fields import Count
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Collaborate


@dataclass(frozen=True)
class Several(Collaborate):
    """All k models are sent to every selected client; W_c <- mean of the uploads of the clients that chose c.

    A model that nobody chose stays as it is. The first of them starts at the initial model, the others at the same
    numbers in another order, tensor by tensor: where initial numbers are drawn alike this is another draw of them.
    """

    k: Count = 2  # how many models there are
    weights: Literal["size", "uniform"] = "size"  # whether a reply counts by its client's samples, or all alike

    @property
    def gives(self) -> Gives:
        return Gives(models=("choice",), start=False)

    def init(self, task: Task) -> Slot:
        gen = generator(task.seed, "several")
        others = [tree.mapped(lambda value: shuffled(value, gen), task.model) for _ in range(self.k - 1)]
        return {
            "models": tree.stacked([task.model, *others]),
            "cluster": torch.full((task.n,), -1, dtype=torch.int64),  # what each client chose last; -1: nothing yet
            "weight": torch.zeros(task.n, dtype=torch.float64),
        }

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        models = {f"model {c}" if c else "model": tree.row(slot["models"], c) for c in range(self.k)}
        return Sent(ids, shared=models, kin=learned(slot, ids)), slot

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        weight = (kept * reply.report["size"] if self.weights == "size" else kept).double().cpu()
        choice = reply.upload["choice"]["of"].double().cpu()  # (m, k)
        models = []
        for c in range(self.k):
            share = weight * choice[:, c]
            models.append(reply.mean("model", share) if share.sum() > 0 else tree.row(slot["models"], c))
        return {
            "models": tree.stacked(models),
            "cluster": slot["cluster"].index_copy(0, reply.ids, choice.argmax(1)),
            "weight": torch.zeros_like(slot["weight"]).index_copy(0, reply.ids, weight),
        }

    def log(self, slot: Slot) -> dict[str, float]:
        seen = slot["cluster"][slot["cluster"] >= 0]
        return {"clusters": float(len(seen.unique()))}


def shuffled(value: Tensor, gen: torch.Generator) -> Tensor:
    """The same numbers in another order."""
    order = torch.randperm(value.numel(), generator=gen).to(value.device)
    return value.reshape(-1)[order].reshape(value.shape)
