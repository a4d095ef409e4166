"""Pooled: one model, trained on everybody's samples. Privacy forbids it; it shows what a federation could reach.

Round:
    select       everyone; known irrelevant clients too
    train        SGD on the samples of all of them together, as many steps as all clients of Local take
    collaborate  the one model, which every client is judged by (global); post is that model, fine-tuned by each client
"""

from fedkin.collaborate import Mean
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Pooled


def pooled(eta: float = 0.02, steps: int | None = 20, epochs: int | None = None, total: int | None = None) -> Method:
    return Method(
        name="pooled",
        select=Uniform(fraction=1.0),
        train=Pooled(eta=eta, steps=None if epochs else steps, epochs=epochs, total=total),
        keep=Everyone(),
        collaborate=Mean(),
    )
