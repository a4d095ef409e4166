"""Two models at each client, one that the server gets and one that it does not: the client of Ditto and PFedRe."""

from dataclasses import dataclass, replace
from typing import Literal

from fedkin.core.tree import Batch, Message, Model
from fedkin.fields import NonNegative, Positive
from fedkin.messages import Objective, Work
from fedkin.train.sgd import SGD
from fedkin.training import Descent


@dataclass(frozen=True)
class TwoStreams(SGD):
    """w <- w - eta g(w);  v <- v - eta_v [ g(v) + lam (v - w^t) ].

    w^t is the model that was sent, and w starts there. The client uploads w. The client is scored by v, which never
    leaves it. `eta_v` is eta if it is None. `batches="own"` draws batches for w and others for v, "same" uses the same
    batches for both; w has those of FedAvg either way, so that w is FedAvg's model. With `restart`, v starts every
    round at w^t. PFedRe's beta is v with lam = 0 and the same batches.
    """

    own_streams = True

    lam: NonNegative = 1.0  # how strongly the personal model is pulled towards the common one
    eta_v: Positive | None = None  # the rate of the personal model; null: eta
    batches: Literal["own", "same"] = "own"  # whether the personal model has mini-batches of its own
    restart: bool = False  # whether the personal model starts every round at the common one

    @property
    def batches_per_step(self) -> int:
        return 2 if self.batches == "own" else 1

    @property
    def personal_is_local(self) -> bool:
        return self.lam == 0 and not self.restart

    def slots(self, model: Model, own: bool) -> Message:
        return super().slots(model, own) | {"personal": model}

    def descents(self) -> tuple[Descent, ...]:
        speed = 1.0 if self.eta_v is None else self.eta_v / self.eta
        shared = Descent("model", momentum=self.momentum, decay=self.weight_decay)
        last = self.batches_per_step - 1
        return shared, replace(shared, model="personal", towards="centre", pull=self.lam, speed=speed, batch=last)

    def begin(self, sent: Message | None, mine: Message) -> Message:
        start = sent["model"] if sent and "model" in sent else mine["model"]
        personal = start if self.restart else mine["personal"]
        return self.rested({"model": start, "personal": personal, "centre": start})

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        return {name: carry[name] for name in mine}, {"model": carry["model"]}

    def personal_model(self, sent: Message | None, mine: Message, batch: Batch, f: Objective) -> Model:
        return mine["personal"]
