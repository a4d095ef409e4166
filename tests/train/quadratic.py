"""f(w) = a/2 (w - b)^2, where every answer of a train part is known in closed form.

A part takes any objective with a gradient, so the quadratic stands in for the network. The model of several clients is
stacked, with a and b one row a client, which the fused step of the stacked engine takes as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from fedkin.core.tree import Batch, Message, Model
from fedkin.engines import Stacked
from fedkin.messages import Work
from fedkin.parts import Train


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@dataclass(frozen=True)
class Quadratic:
    a: Tensor
    b: Tensor

    def loss(self, model: Model, batch: Batch) -> Tensor:
        return 0.5 * self.a * (model["w"] - self.b) ** 2

    def grad(self, model: Model, batch: Batch) -> Model:
        return {"w": self.a * (model["w"] - self.b)}

    def add_grad(self, into: Model, keep: float, scale: float, model: Model, batch: Batch) -> None:
        slope = self.grad(model, batch)["w"]
        into["w"].mul_(keep).add_(slope, alpha=scale)


def declared(part: Train, start: Message, f: Quadratic, steps: int, mine: Message) -> Message:
    """The part as it stands: begin, and its own steps."""
    carry = part.begin(start, mine)
    for _ in range(steps):
        carry = part.step(carry, ({},), f, part.eta)
    return carry


def fused(part: Train, start: Message, f: Quadratic, steps: int, mine: Message) -> Message:
    """The same by the stacked engine's in-place form."""
    carry = {name: {"w": model["w"].clone()} for name, model in part.begin(start, mine).items()}
    engine: Any = SimpleNamespace(stacked_objective=f)
    for _ in range(steps):
        for descent in part.descents():
            Stacked.descend(engine, descent, descent.terms(), carry, {}, part.eta)
    return carry


WAYS = pytest.mark.parametrize("way", [declared, fused])
F = Quadratic(tensor(1.0, 3.0, 0.5), tensor(2.0, -1.0, 4.0))
START = tensor(10.0, 10.0, -5.0)


def ended(way: Any, part: Train, steps: int, start: Tensor = START, f: Quadratic = F, **mine: Tensor) -> Tensor:
    found = way(part, {"model": {"w": start}}, f, steps, {name: {"w": value} for name, value in mine.items()})
    result: Tensor = found["model"]["w"]
    return result


def work(steps: float = 1.0, rate: float = 0.1) -> Work:
    return Work(*(torch.tensor(value, dtype=torch.float64) for value in (1.0, steps, rate)))
