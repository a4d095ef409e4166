"""SGD pulled towards what the server sent: FedProx, FedMCSA, FedAMP."""

from dataclasses import dataclass
from typing import Literal

from fedkin.core.tree import Message, Model
from fedkin.errors import require
from fedkin.parts import Descent, Work
from fedkin.train.sgd import SGD


@dataclass(frozen=True)
class Prox(SGD):
    """theta <- theta - eta [ g(theta) + lam (theta - centre) ]; the centre is the last model this client was sent.

    A client that holds a model of its own keeps its centre too, so that it may train in rounds in which it is sent
    nothing; before it is ever sent anything the centre is its first model. `start="own"` begins at the client's own
    model instead of the one sent, and is still pulled towards the latter.
    """

    lam: float = 0.01
    start: Literal["sent", "own"] = "sent"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.lam >= 0, f"train.lam cannot be negative, and is {self.lam}.")
        require(self.start in ("sent", "own"), f"train.start is 'sent' or 'own', not '{self.start}'.")

    def slots(self, model: Model, own: bool) -> Message:
        return {"model": model, "centre": model} if own else {}

    def descents(self) -> tuple[Descent, ...]:
        return (Descent("model", "centre", self.lam, momentum=self.momentum, decay=self.weight_decay),)

    def begin(self, sent: Message | None, mine: Message) -> Message:
        if sent and "model" in sent:
            start = mine["model"] if self.start == "own" else sent["model"]
            return self.rested({"model": start, "centre": sent["model"]})
        return self.rested({"model": mine["model"], "centre": mine["centre"]})

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        kept = {name: carry[name] for name in ("model", "centre") if name in mine}
        return mine | kept, {"model": carry["model"]}
