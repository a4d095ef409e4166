"""kin's server: the mean of the common model, of its shadows, and of the weights that clients give their experts; and,
where they have that expert, a mixture of the models of its kin for each client."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from fedkin.collaborate.classifiers import ClassifierSimilarity
from fedkin.collaborate.graph import CollaborationGraph
from fedkin.collaborate.mean import Mean
from fedkin.collaborate.mixing import Mixing, blended, components
from fedkin.collaborate.similarity_threshold import joined
from fedkin.contract import Gives, Needs
from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.errors import require
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
        return replace(super().gives, models=(*self.shadows, *self.of_kin, "mix"), remembered=len(self.of_kin))

    @property
    def needs(self) -> Needs:
        return super().needs if self.kin is None else replace(self.kin.needs, current=False)

    def check(self) -> None:
        common = isinstance(self.kin, ClassifierSimilarity)
        require(not common, "ClassifierSimilarity begins with a common model, so it cannot be collaborate.kin.")

    def init(self, task: Task) -> Slot:
        slot = super().init(task) | dict.fromkeys(self.shadows, task.model)
        if self.kin is None:
            return slot
        nobody = tree.mapped(lambda value: value.new_zeros(0, *value.shape), task.model)
        seen = torch.zeros(0, dtype=torch.int64)
        return slot | {"uploaded": dict.fromkeys(self.of_kin, nobody), "seen": seen, "who": self.kin.init(task)}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        shared = {name: value for name, value in slot.items() if name not in SERVERS}
        if self.kin is None:
            return Sent(ids, shared=shared), slot
        sent, who = self.kin.send(slot["who"], task, ids, self.held(slot, "kin", ids))
        assert sent.kin is not None
        learned, own = sent.kin.whole(), {"kin": sent.own["model"]}
        device = next(iter(task.model.values())).device
        weights = {name: value.to(device) for name, value in learned.weights.items()}
        for name in self.of_kin[1:]:
            sources = self.held(slot, name, learned.sources)
            own[name] = blended(weights, sources, components(sources, self.kin.granular()))
        return replace(sent, shared=shared, own=own), slot | {"who": who}

    def send_to_judge(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> Sent:
        """The common model and what the clients found on average; all else is each client's own."""
        return Sent(ids, shared={name: slot[name] for name in ("model", "mix") if name in slot})

    def held(self, slot: Slot, name: str, ids: Tensor) -> Model:
        """The models of these clients by the name of a model of the expert 'kin', as they uploaded them last."""
        common = slot["model" if name == "kin" else name.removeprefix("kin ")]
        there = torch.isin(ids, slot["seen"]).nonzero()[:, 0]
        at = torch.searchsorted(slot["seen"], ids[there])

        def rows(value: Tensor, stack: Tensor) -> Tensor:
            found = value.expand(len(ids), *value.shape).clone()
            return found.index_copy_(0, there.to(value.device), stack[at.to(value.device)])

        return tree.mapped(rows, common, slot["uploaded"][name])

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        if self.kin is not None:
            mixed = Sent(sent.ids, own={"model": sent.own["kin"]}, kin=sent.kin)
            trained = Reply(reply.ids, {"model": reply.upload["kin"]}, reply.report)
            who = self.kin.receive(slot["who"], task, mixed, trained, kept)
            uploaded = {
                name: joined(slot["seen"], slot["uploaded"][name], reply.ids, reply.upload[name])[1]
                for name in self.of_kin
            }
            seen = torch.cat([slot["seen"], reply.ids]).unique()
            slot = slot | {"who": who, "uploaded": uploaded, "seen": seen}
        weight = kept * reply.report["size"] if self.weights == "size" else kept
        if not weight.sum() > 0:
            return slot
        shadows = {name: reply.mean(name, weight) for name in self.shadows}
        return super().receive(slot, task, sent, reply, kept) | shadows | {"mix": reply.mean("mix", kept)}

    def log(self, slot: Slot) -> dict[str, float]:
        """How much clients trust their own model on average, before the guard, and the lead of the mixtures over it."""
        if "mix" not in slot:
            return {}
        return {"weight_alone": float(slot["mix"]["weights"][0]), "lead": float(slot["mix"]["lead"])}

    def cautions(self, task: Task, share: float) -> list[str]:
        said = [] if self.kin is None else self.kin.cautions(task, share)
        return [sentence.replace("collaborate.", "collaborate.kin.") for sentence in said]
