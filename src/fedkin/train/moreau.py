"""pFedMe's client: a personal model theta in the Moreau envelope around w."""

from dataclasses import dataclass
from typing import Any, ClassVar

from fedkin.core.tree import Batch, Message, Model
from fedkin.errors import require
from fedkin.fields import Count, NonNegative, Positive
from fedkin.messages import Objective, Work
from fedkin.train.sgd import SGD
from fedkin.training import Descent


@dataclass(frozen=True)
class Moreau(SGD):
    """For each of R batches: K times theta <- theta - eta_p [ g(theta) + lam (theta - w) + mu theta ], then
    w <- w - eta lam (w - theta).

    theta starts at w in every round and continues from batch to batch, as in pFedMe's code. mu is `weight_decay`. The
    client uploads w and shows w when it is asked for its current model. It is scored by theta; w is scored as 'post-w'.
    """

    also: ClassVar[dict[str, str]] = {"w": "model"}

    eta: Positive = 0.005  # the rate of w, the model that is uploaded
    eta_p: Positive = 0.01  # the rate of theta, the personal model
    lam: NonNegative = 20.0  # how strongly theta is pulled towards w
    K: Count = 5  # steps of theta for each mini-batch

    def check(self) -> None:
        super().check()
        require(self.momentum == 0, "pFedMe's client has no momentum; set train.momentum=0.")
        require(
            self.eta_p * self.lam < 2 and self.eta * self.lam < 1,
            f"train.lam={self.lam} is too strong for eta={self.eta} and eta_p={self.eta_p}: the steps diverge unless "
            "eta lam < 1 and eta_p lam < 2.",
        )

    def slots(self, model: Model, own: bool) -> Message:
        return {"model": model, "theta": model}

    def alone(self) -> dict[str, Any]:
        """K inner steps at the personal rate for each batch."""
        more = {name: value and value * self.K for name, value in (("steps", self.steps), ("epochs", self.epochs))}
        return super().alone() | more | {"eta": self.eta_p}

    def descents(self) -> tuple[Descent, ...]:
        theta = Descent("theta", "model", self.lam, decay=self.weight_decay, speed=self.eta_p / self.eta)
        return (theta,) * self.K + (Descent("model", "theta", self.lam, gradient=False),)

    def begin(self, sent: Message | None, mine: Message) -> Message:
        w = sent["model"] if sent and "model" in sent else mine["model"]
        return {"model": w, "theta": w}

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        return {"model": carry["model"], "theta": carry["theta"]}, {"model": carry["model"]}

    def personal_model(self, sent: Message | None, mine: Message, batch: Batch, f: Objective) -> Model:
        return mine["theta"]
