"""pFedSim's weights: bodies are mixed by how alike the heads of two clients are; heads stay where they are."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.collaborate.mixing import Granularity, Mixing, Weights, normalised, spread
from fedkin.contract import Needs
from fedkin.core import tree
from fedkin.core.geometry import NOTHING, pairs
from fedkin.core.layers import chosen, layers
from fedkin.core.tree import Model
from fedkin.fields import Share
from fedkin.messages import Reply, Sent, Slot, Task

HIGHEST = 0.9999  # a similarity above this, as a client's with itself, counts as this


@dataclass(frozen=True)
class ClassifierSimilarity(Mixing):
    """u_i: the body is sum_j w_ij body_j, the head is that of client i;  w_ij = -log(1 - s_ij), normalised.

    s_ij is the mean over the classes of the cosines of the two heads' weights of a class, and at least 0. In the first
    rounds, the share `warmup` of all, every selected client is sent the mean by size of what was uploaded last, as in
    FedAvg. A client that has not trained since then counts as one that holds this mean.
    """

    warmup: Share = 0.5  # the share of all rounds in which there is one common model

    @property
    def needs(self) -> Needs:
        return Needs(current=True, rounds=True, layers=True)

    def granular(self) -> Granularity:
        return "layer"

    def similarities(self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None) -> Weights:
        own = torch.eye(len(kept), dtype=torch.float64, device=kept.device)
        head = chosen(stacked, "head")
        rows = unit_rows(stacked[next((name for name in head if stacked[name].dim() > 2), head[0])])
        alike = pairs({"rows": rows}, ["rows"], "cosine").rows(slice(0, len(kept)))  # the mean over rows of unit length
        scores = -torch.log(1 - alike.clamp(0, HIGHEST))
        shares = normalised(scores, own > 0, kept)
        every = layers(stacked)
        return Weights({layer: own if names == head else shares for layer, names in every.items()})

    def init(self, task: Task) -> Slot:
        rounds = {"rounds": torch.zeros((), dtype=torch.int64), "seen": torch.zeros(task.n, dtype=torch.bool)}
        return super().init(task) | {"model": task.model} | rounds

    def common(self, slot: Slot, task: Task) -> bool:
        """Whether the coming round is one of the first, with one common model."""
        return int(slot["rounds"]) < int(self.warmup * task.rounds)

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        assert current is not None
        if self.common(slot, task):
            return Sent(ids, own={"model": tree.mapped(torch.clone, tree.repeated(slot["model"], len(ids)))}), slot
        seen = slot["seen"][ids]

        def now(own: Tensor, mean: Tensor) -> Tensor:
            return torch.where(spread(seen.to(own.device), own), own, mean)

        shown = tree.mapped(now, current, slot["model"])
        return super().send(slot, task, ids, shown)

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        slot = super().receive(slot, task, sent, reply, kept)
        rounds = {"rounds": slot["rounds"] + 1}
        if not self.common(slot, task):
            return slot | rounds | {"seen": slot["seen"].index_fill(0, reply.ids, True)}
        weight = kept * reply.report["size"]
        return slot | rounds | ({"model": reply.mean("model", weight)} if weight.sum() > 0 else {})


def unit_rows(weight: Tensor) -> Tensor:
    """The rows of each client's weight, (m, classes, width), divided by their lengths."""
    flat = weight.double().reshape(*weight.shape[:2], -1)
    unit: Tensor = flat / flat.norm(dim=2, keepdim=True).clamp(min=NOTHING)
    return unit
