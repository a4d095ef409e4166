"""kin's server: the mean of the common model, of its shadows, and of the weights that clients give their experts; and,
where they have that expert, a mixture of the models of its kin for each client."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from fedkin.collaborate.graph import CollaborationGraph
from fedkin.collaborate.mean import Mean
from fedkin.collaborate.mixing import Mixing, blended, components, spread
from fedkin.contract import Gives, Needs
from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.fields import Count
from fedkin.messages import Reply, Sent, Slot, Task

SERVERS = ("uploaded", "seen", "who")  # what the server remembers and does not send as it is


@dataclass(frozen=True)
class MeanOfExperts(Mean):
    """W <- mean of W_i, and W_-f <- mean of the shadows W_i,-f, by size;  m <- mean of the clients' weights pi_i.

    A shadow is the model that clients train without the samples of one fold of theirs. `crossed` is how many there are.

    With `kin` each selected client i is also sent u_i = sum_j a_ij v_j, a mixture of the models v_j of the expert 'kin'
    that the selected clients uploaded last, and the mixtures of their shadows with the same a_ij. The v_j of a client
    that has uploaded nothing yet is W, and its shadows are those of W. The server remembers these models of every
    client.
    """

    crossed: Count = 3  # how many shadows the common model has
    kin: Mixing | None = field(default_factory=CollaborationGraph)  # who is whose kin; null: nobody is anybody's

    @property
    def shadows(self) -> tuple[str, ...]:
        return tuple(f"without {fold + 1}" for fold in range(self.crossed))

    @property
    def of_kin(self) -> tuple[str, ...]:
        return () if self.kin is None else ("kin", *(f"kin {name}" for name in self.shadows))

    @property
    def gives(self) -> Gives:
        return replace(super().gives, models=(*self.shadows, *self.of_kin, "mix"))

    @property
    def needs(self) -> Needs:
        return super().needs if self.kin is None else replace(self.kin.needs, current=False)

    def init(self, task: Task) -> Slot:
        slot = super().init(task) | dict.fromkeys(self.shadows, task.model)
        if self.kin is None:
            return slot
        uploaded = dict.fromkeys(self.of_kin, tree.repeated(task.model, task.n))
        seen = torch.zeros(task.n, dtype=torch.bool)
        return slot | {"uploaded": uploaded, "seen": seen, "who": self.kin.init(task)}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        shared = {name: value for name, value in slot.items() if name not in SERVERS}
        if self.kin is None:
            return Sent(ids, shared=shared), slot
        sent, who = self.kin.send(slot["who"], task, ids, self.held(slot, "kin", ids))
        assert sent.kin is not None
        learned, own = sent.kin.whole(), {"kin": sent.own["model"]}
        for name in self.of_kin[1:]:
            sources = self.held(slot, name, learned.sources)
            own[name] = blended(learned.weights, sources, components(sources, self.kin.granular()))
        return replace(sent, shared=shared, own=own), slot | {"who": who}

    def held(self, slot: Slot, name: str, ids: Tensor) -> Model:
        """The models of these clients by the name of a model of the expert 'kin', as they uploaded them last."""
        common = slot["model" if name == "kin" else name.removeprefix("kin ")]
        seen = slot["seen"][ids]
        return tree.mapped(
            lambda value, start: torch.where(spread(seen, value).to(value.device), value, start),
            tree.rows(slot["uploaded"][name], ids),
            common,
        )

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        if self.kin is not None:
            seen = slot["seen"].index_fill(0, reply.ids, True)
            slot = slot | {"uploaded": self.remembered(slot["uploaded"], reply), "seen": seen}
            of_kin = replace(reply, upload={"model": reply.upload["kin"]})
            slot = slot | {"who": self.kin.receive(slot["who"], task, sent, of_kin, kept)}
        weight = kept * reply.report["size"] if self.weights == "size" else kept
        if not weight.sum() > 0:
            return slot
        shadows = {name: reply.mean(name, weight) for name in self.shadows}
        return super().receive(slot, task, sent, reply, kept) | shadows | {"mix": reply.mean("mix", kept)}

    def remembered(self, uploaded: dict[str, Model], reply: Reply) -> dict[str, Model]:
        """The last models of the expert 'kin' and of its shadows of all clients, with those of these replies."""

        def later(name: str) -> Model:
            new = reply.upload[name]
            return {
                key: torch.index_copy(old, 0, reply.ids.to(old.device), new[key]) for key, old in uploaded[name].items()
            }

        return {name: later(name) for name in self.of_kin}

    def log(self, slot: Slot) -> dict[str, float]:
        """How much clients trust their own model on average, and by how much the mixtures are better than it."""
        if "mix" not in slot:
            return {}
        return {"weight_alone": float(slot["mix"]["weights"][0]), "lead": float(slot["mix"]["lead"])}

    def cautions(self, task: Task, share: float) -> list[str]:
        return [] if self.kin is None else self.kin.cautions(task, share)
