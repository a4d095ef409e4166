"""A step of training that is affine in the gradient, declared as data so that an engine may fuse it."""

from __future__ import annotations

from dataclasses import dataclass

from fedkin.core import tree
from fedkin.messages import Batch, Message, Objective


@dataclass(frozen=True)
class Descent:
    """One descent of one model of the carry (the named models of a client during a round):

    v <- momentum v + grad(model) + decay model + pull (model - towards) + sum(plus) - sum(minus)
    model <- model - speed rate v

    `model`, `towards`, `plus` and `minus` are names of models in the carry. If there is momentum, the velocity v of a
    model is in the carry as 'velocity of <model>'.
    """

    model: str = "model"
    towards: str | None = None
    pull: float = 0.0
    plus: tuple[str, ...] = ()
    minus: tuple[str, ...] = ()
    momentum: float = 0.0
    decay: float = 0.0
    speed: float = 1.0  # times the rate of the round
    batch: int = 0  # which of the batches of a step

    def terms(self) -> dict[str, float]:
        """The factor of each model of the carry that is added to the gradient in v."""
        found: dict[str, float] = {}
        pulled = [(self.model, self.pull), (self.towards, -self.pull)] if self.towards is not None else []
        beside = [*((name, 1.0) for name in self.plus), *((name, -1.0) for name in self.minus)]
        for name, factor in [(self.model, self.decay), *pulled, *beside]:
            found[name] = found.get(name, 0.0) + factor
        return {name: factor for name, factor in found.items() if factor}

    def begin(self, carry: Message) -> Message:
        """The carry with the velocity of this descent at zero, if it has momentum."""
        return carry | {f"velocity of {self.model}": tree.zeros(carry[self.model])} if self.momentum else carry

    def step(self, carry: Message, batch: Batch, f: Objective, rate: float) -> Message:
        """The carry after one step on this batch."""
        model = carry[self.model]
        v = f.grad(model, batch)
        if self.decay:
            v = tree.added(v, model, self.decay)
        if self.towards is not None and self.pull:
            v = tree.added(v, tree.update(carry[self.towards], model), self.pull)
        for name in self.plus:
            v = tree.added(v, carry[name])
        for name in self.minus:
            v = tree.added(v, carry[name], -1.0)
        result = dict(carry)
        if self.momentum:
            v = tree.added(v, carry[f"velocity of {self.model}"], self.momentum)
            result[f"velocity of {self.model}"] = v
        result[self.model] = tree.added(model, v, -rate * self.speed)
        return result
