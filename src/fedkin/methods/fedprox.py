"""FedProx (Li et al. 2020): FedAvg whose clients are pulled towards the model they received.

The local gradient is g(theta) + lam (theta - W); the paper's mu is lam here.
"""

from fedkin.collaborate import Mean
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Prox


def fedprox(
    lam: float = 0.01, count: int = 20, eta: float = 0.02, steps: int | None = 20, epochs: int | None = None
) -> Method:
    return Method(
        name="fedprox",
        select=Uniform(count=count),
        train=Prox(lam=lam, eta=eta, steps=None if epochs else steps, epochs=epochs),
        keep=Everyone(),
        collaborate=Mean(),
    )
