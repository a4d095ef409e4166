"""FedFomo's server: each client is offered the models of a few others, and mixes them itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.collaborate.mixing import finite_models
from fedkin.contract import Gives, Needs
from fedkin.core.geometry import pairs
from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.fields import Count
from fedkin.messages import Kin, Reply, Sent, Slot, Task
from fedkin.parts import Collaborate

MOST = 10_000  # clients, of which all pairs take 1.6 GB


@dataclass(frozen=True)
class Offers(Collaborate):
    """A selected client is sent the models of the `models` others, of those selected, that have served it best so far.

    How well a model served is the sum of the gains that the client has reported for it; of equal ones the nearest is
    sent. Who learns from whom is what clients said when they took part last.
    """

    models: Count = 5  # how many models of others a client is sent

    @property
    def needs(self) -> Needs:
        return Needs(current=True)

    @property
    def gives(self) -> Gives:
        return Gives(own_model=True, models=("gains",), start=False)

    def init(self, task: Task) -> Slot:
        sentence = f"FedFomo's server remembers a number for each pair of clients, too many for {task.n:,} of them;"
        require(task.n <= MOST, f"{sentence} choose another method.")
        none = torch.zeros(task.n, task.n, dtype=torch.float64)
        return {"liking": none, "shares": torch.eye(task.n, dtype=torch.float64)}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        assert current is not None
        models, finite = finite_models(current)
        m, places = len(ids), torch.arange(len(ids))
        good = finite.cpu()[None, :] & ~torch.eye(m, dtype=torch.bool)  # (m, m)
        near = pairs(models, list(models), "distance").rows(slice(0, m)).cpu()
        order = torch.where(good, near, torch.inf).argsort(dim=1, stable=True)
        liked = torch.where(good, slot["liking"][ids][:, ids], -torch.inf).gather(1, order)
        order = order.gather(1, liked.argsort(dim=1, descending=True, stable=True))[
            :, : max(1, min(self.models, m - 1))
        ]
        order = torch.where(good.gather(1, order), order, places[:, None])  # where nobody is left, its own
        others = {name: value[order.to(value.device)] for name, value in models.items()}
        learned = Kin(ids, torch.arange(task.n), {"model": slot["shares"][ids]})
        return Sent(ids, own={"others": others}, kin=learned), slot | {"offered": ids[order]}

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        gains = reply.upload["gains"]["of"].double().cpu()  # (k, 1 + M), a client's own model first
        whose = torch.cat([reply.ids[:, None], slot["offered"][torch.searchsorted(sent.ids, reply.ids)]], 1)
        positive = gains.clamp(min=0)
        total = positive.sum(1, keepdim=True)
        shares = torch.zeros(len(reply.ids), task.n, dtype=torch.float64)
        shares.scatter_add_(1, whose, positive / total.clamp(min=1e-300))
        shares[torch.arange(len(shares)), reply.ids] += (total[:, 0] <= 0).double()
        more = torch.zeros_like(shares).scatter_add_(1, whose, gains)
        return {
            "liking": slot["liking"].index_add(0, reply.ids, more),
            "shares": slot["shares"].index_copy(0, reply.ids, shares),
            "offered": slot["offered"],
        }
