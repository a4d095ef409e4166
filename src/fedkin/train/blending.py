"""SGD from a blend of the common model and the client's own, element by element: the client of FedALA."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.contract import Needs
from fedkin.core import tree
from fedkin.core.layers import layers
from fedkin.core.tree import Batch, Message, Model
from fedkin.fields import Count, Positive
from fedkin.messages import Objective, Work
from fedkin.train.sgd import SGD


@dataclass(frozen=True)
class Blending(SGD):
    """A client starts at theta_i + A_i * (theta - theta_i) in the last layers, and at the common model theta in others.

    theta_i is the model that the client trained last. A_i has a weight for each number of these layers, ones at first.
    Before each round the client takes `passes` passes over some of its training samples, in mini-batches:

    A_i <- A_i - eta_a g * (theta - theta_i), cut off below 0 and above 1; g is the gradient at the blend.
    """

    last: Count | None = 1  # how many layers, the last ones, are blended; null: all
    eta_a: Positive = 1.0  # the rate at which the weights of the blend are learnt
    samples: Count = 200  # how many training samples a client learns the weights on, at most
    passes: Count = 1  # over these samples, before each round

    @property
    def needs(self) -> Needs:
        return super().needs | Needs(common_model=True)

    @property
    def at_hand(self) -> int:
        return self.samples

    def blended(self, model: Model) -> list[str]:
        """The names of the tensors that are blended."""
        by_layer = list(layers(model).values())
        return [name for names in by_layer[-(self.last or len(by_layer)) :] for name in names]

    def slots(self, model: Model, own: bool) -> Message:
        weights = {name: torch.ones_like(model[name]) for name in self.blended(model)}
        return super().slots(model, own) | {"personal": model, "blend": weights}

    def meet(self, sent: Message, mine: Message, batch: Batch, f: Objective) -> Message:
        common, own, weights = sent["model"], mine["personal"], mine["blend"]
        apart = {name: common[name] - own[name] for name in weights}

        def start(weights: Model) -> Model:
            return common | {name: own[name] + weights[name] * apart[name] for name in weights}

        for _ in range(self.passes):
            for some in mini_batches(batch, self.batch):
                slope = f.grad(start(weights), some)
                weights = {
                    name: (value - self.eta_a * slope[name] * apart[name]).clamp(0, 1)
                    for name, value in weights.items()
                }
        return sent | {"model": start(weights), "blend": weights}

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        learnt = sent["blend"] if sent and "blend" in sent else mine["blend"]
        return mine | {"personal": carry["model"], "blend": learnt}, {"model": carry["model"]}

    def personal_model(self, sent: Message | None, mine: Message, batch: Batch, f: Objective) -> Model:
        return mine["personal"]


def mini_batches(batch: Batch, size: int) -> list[Batch]:
    """The samples in mini-batches of this size, the last one shorter."""
    whole: Tensor | None = batch.get("y")
    number = 0 if whole is None else len(whole)
    return [tree.mapped(lambda value, at=at: value[at : at + size], batch) for at in range(0, number, size)]
