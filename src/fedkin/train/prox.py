"""SGD with a pull towards the model that the server sent: the client of FedProx, FedMCSA and FedAMP."""

from dataclasses import dataclass
from typing import Literal

from fedkin.contract import Needs
from fedkin.core.tree import Message, Model
from fedkin.fields import NonNegative
from fedkin.messages import Work
from fedkin.train.sgd import SGD
from fedkin.training import Descent


@dataclass(frozen=True)
class Prox(SGD):
    """theta <- theta - eta [ g(theta) + lam (theta - centre) ]. The centre is the model that this client was sent last.

    A client that holds a model of its own between rounds also holds its centre, so that it can train in rounds in which
    it is sent nothing. Until it is sent something, its centre is the initial model. With `start="own"` theta starts at
    the client's own model instead of the model that was sent; the centre is still the model that was sent.
    """

    lam: NonNegative = 0.01  # how strongly a client is pulled towards the model it was sent; FedProx calls it mu
    start: Literal["sent", "own"] = "sent"  # where training starts: at the model that was sent, or at the client's own

    @property
    def needs(self) -> Needs:
        return Needs(own_model=self.start == "own")

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
        private = {name: carry[name] for name in ("model", "centre") if name in mine}
        return mine | private, {"model": carry["model"]}
