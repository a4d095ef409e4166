"""The server looks at what clients uploaded last, and asks nobody for the model that it holds now."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torch import Tensor

from fedkin.collaborate.component_attention import ComponentAttention
from fedkin.contract import Gives, Needs
from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Collaborate


@dataclass(frozen=True)
class LastUploads(Collaborate):
    """`base` mixes the last upload of each client in place of its current model; before its first upload, the initial
    model. So only what was uploaded, and noised where that is asked for, is ever looked at: what a client has learned
    in rounds in which it uploads nothing stays with it."""

    base: Collaborate = field(default_factory=ComponentAttention)  # what each client gets back

    @property
    def needs(self) -> Needs:
        return replace(self.base.needs, current=False)

    @property
    def gives(self) -> Gives:
        return replace(self.base.gives, remembered=1 + self.base.gives.remembered)

    def init(self, task: Task) -> Slot:
        return {"base": self.base.init(task), "uploaded": tree.repeated(task.model, task.n)}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        shown = tree.rows(slot["uploaded"], ids) if self.base.needs.current else current
        sent, base = self.base.send(slot["base"], task, ids, shown)
        return sent, slot | {"base": base}

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        base = self.base.receive(slot["base"], task, sent, reply, kept)
        new = reply.upload["model"]
        old = slot["uploaded"]
        uploaded = old | {k: old[k].index_copy(0, reply.ids.to(v.device), v) for k, v in new.items()}
        return slot | {"base": base, "uploaded": uploaded}

    def model(self, slot: Slot) -> Model | None:
        return self.base.model(slot["base"])

    def cautions(self, task: Task, share: float) -> list[str]:
        return self.base.cautions(task, share)

    def log(self, slot: Slot) -> dict[str, float]:
        return self.base.log(slot["base"])
