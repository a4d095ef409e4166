"""SGD with a reward for the direction of the model that the server sent: the client of pFedGraph."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Batch, Message, Model
from fedkin.fields import NonNegative
from fedkin.messages import Objective
from fedkin.train.sgd import SGD
from fedkin.training import Descent

NOTHING = 1e-12  # a model shorter than this has no direction


@dataclass(frozen=True)
class Aligned(SGD):
    """theta <- theta - eta [ g(theta) - mu grad cos(theta, u) ], with u the model that was sent.

    With `sign="away"` the sign of mu is the other one, as in the authors' code, whose clients lower the cosine that the
    paper has them raise. A client that is sent nothing has where it starts as u.
    """

    mu: NonNegative = 0.01  # how much the cosine with the model that was sent counts beside the loss
    sign: Literal["towards", "away"] = "towards"  # whether the cosine is raised, as in the paper, or lowered

    def descents(self) -> tuple[Descent, ...]:
        return (Descent("model", plus=("turn",), momentum=self.momentum, decay=self.weight_decay),)

    @property
    def steps_by_descent(self) -> bool:
        return self.mu == 0

    def begin(self, sent: Message | None, mine: Message) -> Message:
        start = sent["model"] if sent and "model" in sent else mine["model"]
        one = next(iter(start.values())).reshape(-1)[0] * 0 + 1  # gives stacked steps the shape of a client's number
        return self.rested({"model": start, "sent": start, "turn": tree.zeros(start), "client": {"one": one}})

    def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
        scale = self.mu if self.sign == "away" else -self.mu
        turn = cosine_slope(carry["model"], carry["sent"], carry["client"]["one"].shape)
        return super().step(carry | {"turn": tree.mapped(lambda value: scale * value, turn)}, batches, f, rate)


def cosine_slope(model: Model, other: Model, shape: torch.Size) -> Model:
    """The gradient of cos(model, other) by the model; shape: (), or (m,) where both are stacked."""

    def inner(a: Model, b: Model) -> Tensor:
        return torch.stack([(a[name] * b[name]).reshape(*shape, -1).sum(-1) for name in a]).sum(0)

    a, b = inner(model, model).sqrt().clamp(min=NOTHING), inner(other, other).sqrt().clamp(min=NOTHING)
    first, second = 1 / (a * b), inner(model, other) / (a * b) / a**2

    def slope(own: Tensor, towards: Tensor) -> Tensor:
        wide = (*shape, *(1,) * (own.dim() - len(shape)))
        return first.reshape(wide) * towards - second.reshape(wide) * own

    return tree.mapped(slope, model, other)
