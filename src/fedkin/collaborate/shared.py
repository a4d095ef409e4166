"""Only some layers of a model are shared; the others never leave their clients: FedPer, LG-FedAvg, FedRep, FedBABU."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from torch import Tensor

from fedkin.collaborate.mean import Mean
from fedkin.contract import Gives, Needs
from fedkin.core.layers import chosen
from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Collaborate


@dataclass(frozen=True)
class Shared(Collaborate):
    """`base` is given nothing but the shared layers: it sends them, mixes them, and compares clients by them.

    `share` is "body", all layers but the last; "head", the last; or layers by name with commas between them. A client
    adds the layers that it was not sent and uploads no others than it was sent, so that traffic is theirs alone. With
    rest="own" each client keeps its other layers from round to round. With rest="first" they are those of the first
    model in every round, the same for all clients, and the common model has them too. A base that asks clients for the
    models that they hold now is shown the shared layers of them; a site on another machine shows it the whole model.
    """

    base: Collaborate = field(default_factory=Mean)  # what is done with the shared layers
    share: str = "body"  # which layers are shared: body, head, or names with commas between them
    rest: Literal["own", "first"] = "own"  # whose the other layers are: each client's own, or the first model's

    def check(self) -> None:
        require(not self.base.gives.models, f"{type(self.base).__name__} cannot share only some layers.")
        plain = self.base.gives.whole_model and self.base.gives.start and self.base.gives.replies
        require(plain, f"{type(self.base).__name__} cannot be the base of Shared.")

    @property
    def needs(self) -> Needs:
        return self.base.needs | Needs(layers=True)

    @property
    def gives(self) -> Gives:
        own = self.rest == "own"
        base = self.base.gives
        return replace(
            base,
            own_model=own or base.own_model,
            common_model=base.common_model and not own,
            whole_model=False,
        )

    def some(self, task: Task) -> Task:
        """The task with the shared layers only."""
        return replace(task, model={name: task.model[name] for name in chosen(task.model, self.share)})

    def init(self, task: Task) -> Slot:
        return {"base": self.base.init(self.some(task)), "first": task.model}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        some = self.some(task)
        shown = None if current is None else {name: current[name] for name in some.model}
        sent, base = self.base.send(slot["base"], some, ids, shown)
        return sent, slot | {"base": base}

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        return slot | {"base": self.base.receive(slot["base"], self.some(task), sent, reply, kept)}

    def model(self, slot: Slot) -> Model | None:
        shared = self.base.model(slot["base"])
        if self.rest == "own" or shared is None:
            return None
        return {name: shared.get(name, value) for name, value in slot["first"].items()}

    def cautions(self, task: Task, share: float) -> list[str]:
        return self.base.cautions(self.some(task), share)

    def log(self, slot: Slot) -> dict[str, float]:
        return self.base.log(slot["base"])
