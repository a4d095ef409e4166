"""Two models at one client: one shared with the server, one private and pulled towards it. Ditto's client."""

from dataclasses import dataclass, replace
from typing import Literal

from fedkin.core.tree import Batch, Message, Model
from fedkin.errors import require
from fedkin.parts import Descent, Objective, Work
from fedkin.train.sgd import SGD


@dataclass(frozen=True)
class TwoStreams(SGD):
    """w <- w - eta g(w), which is uploaded; v <- v - eta_v [ g(v) + lam (v - w^t) ], which never leaves the client.

    w^t is the model as it was sent. `batches="own"` gives each of the two its own batches, "same" the same ones.
    `eta_v` is eta unless given. With `restart` v begins every round at w^t. PFedRe's client is this one too, with lam 0
    and the same batches: its beta is v.
    """

    lam: float = 1.0
    eta_v: float | None = None
    batches: Literal["own", "same"] = "own"
    restart: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.lam >= 0, f"train.lam cannot be negative, and is {self.lam}.")
        require(self.eta_v is None or self.eta_v > 0, f"train.eta_v must be positive, not {self.eta_v}.")
        require(self.batches in ("own", "same"), f"train.batches is 'own' or 'same', not '{self.batches}'.")

    @property
    def batches_per_step(self) -> int:  # type: ignore[override]
        return 2 if self.batches == "own" else 1

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
