"""FedDWA's weights: a client gets more from clients whose models lie where its own is going."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.collaborate.mixing import Mixing, finite_models, kin, normalised
from fedkin.collaborate.similarity_threshold import cached, joined
from fedkin.core import tree
from fedkin.core.geometry import pairs
from fedkin.core.tree import Model
from fedkin.fields import Count
from fedkin.messages import Reply, Sent, Slot, Task

NEAREST = 1e-24  # a squared distance below this counts as this


@dataclass(frozen=True)
class Ahead(Mixing):
    """u_i = sum_j w_ij theta_j,  w_ij = 1 / |next_i - theta_j|^2, the k largest of a client, divided by their sum.

    next_i = theta_i + (theta_i - what client i was sent in the last round it trained in): where its model would be
    after one more round like the last. Before its first round it is theta_i itself. The server knows both models, so
    that clients send one model as usual.
    """

    k: Count = 5  # of how many clients a client gets something, itself one of them if its own weight is large enough

    def weighed_ahead(self, models: Model, moved: Model, kept: Tensor) -> Tensor:
        """The weights of these models in each other's mixtures. moved: what each client's last round has changed."""
        m = len(kept)
        both = tree.joined([tree.added(models, moved), models])
        apart = pairs(both, list(both), "distance").rows(slice(0, m))[:, m:].clamp(min=NEAREST)  # (m, m)
        near = apart.amin(1, keepdim=True) / apart
        least = near.topk(min(self.k, m), dim=1).values[:, -1:]
        mine = torch.eye(m, dtype=torch.bool, device=near.device)
        return normalised(torch.where(near >= least, near, 0.0), mine, kept)

    def init(self, task: Task) -> Slot:
        cache = tree.mapped(lambda value: value.new_zeros(0, *value.shape), task.model)  # a row for each client seen
        return super().init(task) | {"cache": cache, "seen": torch.zeros(task.n, dtype=torch.bool)}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        assert current is not None
        models, finite = finite_models(current)
        seen, cache = cached(slot)
        still = tree.mapped(torch.zeros_like, current)
        everyone, all_moved = joined(ids, still, seen, cache)
        moved = tree.rows(all_moved, torch.searchsorted(everyone, ids))
        weights = {"model": self.weighed_ahead(models, moved, slot["kept"][ids] * finite.cpu())}
        mixed = self.blend(weights, models, current, finite)
        return Sent(ids, own={"model": mixed}, kin=kin(ids, ids, weights, {})), slot

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        slot = super().receive(slot, task, sent, reply, kept)
        moved = tree.update(sent.to(reply.ids)["model"], reply.upload["model"])
        cache = joined(*cached(slot), reply.ids, moved)[1]
        return slot | {"cache": cache, "seen": slot["seen"].index_fill(0, reply.ids, True)}
