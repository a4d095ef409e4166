"""FedALA (Zhang et al. 2023): each client learns which numbers of the common model to take, and which of its own.

Round:
    select       `count` clients uniformly
    train        the last layers start at theta_i + A_i * (theta - theta_i), with weights A_i that the client has learnt
                 on its samples; the others at theta; then SGD
    collaborate  the mean by size
"""

from fedkin.collaborate import Mean
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Blending


def fedala(
    count: int = 20, eta: float = 0.02, eta_a: float = 1.0, steps: int | None = 20, epochs: int | None = None
) -> Method:
    return Method(
        name="fedala",
        select=Uniform(count=count),
        train=Blending(eta=eta, steps=None if epochs else steps, epochs=epochs, eta_a=eta_a),
        keep=Everyone(),
        collaborate=Mean(),
    )
