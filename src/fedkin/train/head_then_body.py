"""SGD that changes the head of a model first and its body then: the client of FedRep and FedBABU."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedkin.contract import Needs
from fedkin.core.layers import chosen
from fedkin.core.tree import Batch, Message
from fedkin.fields import Share
from fedkin.messages import Objective
from fedkin.train.sgd import SGD


@dataclass(frozen=True)
class HeadThenBody(SGD):
    """In the first `head` of a round's steps only the last layer changes, in the others only the layers before it.
    So the last step is one for the body, unless `head` is 1.

    FedRep has most steps for the head; FedBABU has none, so that its head stays as it was at the start. A client that
    takes a common model home trains all of it there, or with `tunes="head"` its head alone.
    """

    clocked = True

    head: Share = 0.5  # which share of a round's steps, its first ones, changes the head; the others change the body
    tunes: Literal["all", "head"] = "all"  # what a client trains of a common model that it takes home

    @property
    def needs(self) -> Needs:
        return super().needs | Needs(layers=True)

    @property
    def steps_by_descent(self) -> bool:
        return False

    def at_home(self) -> SGD:
        if self.tunes == "head":
            return HeadThenBody(**self.alone(), head=1.0)
        return SGD(**self.alone())

    def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
        after, for_head = super().step(carry, batches, f, rate), batches[0]["done"] <= self.head
        head = set(chosen(carry["model"], "head"))

        def turned(name: str, new: Tensor, old: Tensor) -> Tensor:
            turn = for_head if name in head else ~for_head
            return torch.where(turn.reshape(turn.shape + (1,) * (new.dim() - turn.dim())), new, old)

        return {
            model: {name: turned(name, value, carry[model][name]) for name, value in values.items()}
            for model, values in after.items()
        }
