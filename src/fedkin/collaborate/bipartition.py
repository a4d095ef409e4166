"""CFL's clusters: a cluster whose clients pull in opposite directions while its model stands still is split in two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.geometry import pairs
from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.fields import Count, Positive
from fedkin.messages import Kin, Reply, Sent, Slot, Task
from fedkin.parts import Collaborate


@dataclass(frozen=True)
class Bipartition(Collaborate):
    """Every cluster c has a model: W_c <- W_c + mean of the updates of its clients. All clients begin in one cluster.

    After `first` rounds a cluster of more than `least` replies is split if |mean of the updates| < `still` while the
    largest |update| > `apart`. The halves are those of complete linkage on the cosines of the updates: the two nearest
    groups are joined, where groups are as near as their least similar clients, until two are left. A cluster may be
    split again in a later round. Clients of a split cluster that did not reply stay with the larger half.
    """

    still: Positive = 0.4  # eps_1: a cluster's model stands still if its mean update is shorter
    apart: Positive = 1.6  # eps_2: its clients do not, if the longest of their updates is longer
    first: int = 20  # rounds before the first split
    least: Count = 2  # a cluster with no more replies is not split
    weights: Literal["size", "uniform"] = "uniform"  # whether an update counts by its client's samples, or all alike

    def check(self) -> None:
        require(self.first >= 0, f"collaborate.first cannot be negative, and is {self.first}.")

    def init(self, task: Task) -> Slot:
        return {
            "models": tree.repeated(task.model, 1),  # a row for each cluster
            "cluster": torch.zeros(task.n, dtype=torch.int64),
            "weight": torch.zeros(task.n, dtype=torch.float64),  # of the last update of each client
            "rounds": torch.zeros((), dtype=torch.int64),
        }

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        mine = slot["cluster"][ids]
        return Sent(ids, own={"model": tree.rows(slot["models"], mine)}, kin=learned(slot, ids)), slot

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        rounds = slot["rounds"] + 1
        weight = (kept * reply.report["size"] if self.weights == "size" else kept).double().cpu()
        updates = tree.update(sent.to(reply.ids)["model"], reply.upload["model"])
        before = slot["cluster"]
        cluster, models = before.clone(), [tree.row(slot["models"], i) for i in range(int(before.max()) + 1)]
        for c in range(len(models)):
            at = ((before[reply.ids] == c) & (weight > 0)).nonzero().reshape(-1)
            if int(rounds) > self.first and len(at) > self.least and self.torn(updates, at, weight[at]):
                halves = [at[half] for half in bipartition(similar(updates, at))]
                stay, leave = sorted(halves, key=len, reverse=True)
                cluster[reply.ids[leave]] = len(models)
                models.append(moved(models[c], updates, leave, weight))
                at = stay
            if len(at):
                models[c] = moved(models[c], updates, at, weight)
        return {
            "models": tree.stacked(models),
            "cluster": cluster,
            "weight": torch.zeros_like(slot["weight"]).index_copy(0, reply.ids, weight),
            "rounds": rounds,
        }

    def torn(self, updates: Model, at: Tensor, weight: Tensor) -> bool:
        """Whether the mean of these updates is short while one of them is long."""
        vectors = tree.vector(tree.rows(updates, at)).double()
        mean = (weight.to(vectors.device)[:, None] * vectors).sum(0) / weight.sum()
        return bool(mean.norm() < self.still and vectors.norm(dim=1).max() > self.apart)

    def log(self, slot: Slot) -> dict[str, float]:
        return {"clusters": float(len(slot["cluster"].unique()))}


def moved(model: Model, updates: Model, at: Tensor, weight: Tensor) -> Model:
    """The model of a cluster after the mean of these updates."""
    return tree.added(model, tree.weighted(tree.rows(updates, at), weight[at].to(next(iter(updates.values())).device)))


def similar(updates: Model, at: Tensor) -> Tensor:
    """The cosines of these updates."""  # (k, k)
    some = tree.rows(updates, at)
    return pairs(some, list(some), "cosine").rows(slice(0, len(at))).cpu()


def bipartition(cosines: Tensor) -> tuple[Tensor, Tensor]:
    """The places of two groups by complete linkage; each has at least one."""
    groups = [[i] for i in range(len(cosines))]
    near = cosines.clone().fill_diagonal_(-torch.inf)
    while len(groups) > 2:
        a, b = sorted(divmod(int(near.argmax()), len(groups)))
        groups[a] += groups.pop(b)
        both = torch.minimum(near[a], near[b])  # the least similar of either
        near[a], near[:, a] = both, both
        near[a, a] = -torch.inf
        rest = torch.arange(len(near)) != b
        near = near[rest][:, rest]
    one, other = (torch.tensor(sorted(group)) for group in groups)
    return one, other


def learned(slot: Slot, ids: Tensor) -> Kin:
    """Who learns from whom in the models of the clusters: by the weights of the last round in which somebody replied.

    A client whose cluster had no update then has nothing but what it had.
    """
    sources = torch.cat([ids, slot["weight"].nonzero().reshape(-1)]).unique()
    together = slot["cluster"][ids][:, None] == slot["cluster"][sources][None, :]
    share = torch.where(together, slot["weight"][sources], 0.0)
    total = share.sum(1, keepdim=True)
    mine = ids[:, None] == sources[None, :]
    return Kin(ids, sources, {"model": torch.where(total > 0, share / total.clamp(min=1e-300), mine.double())})
