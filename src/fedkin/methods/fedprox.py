"""FedProx (Li et al. 2020): FedAvg with a pull towards the model that the client received.

Round:
    select       `count` clients uniformly
    train        steps of g(theta) + lam (theta - W) from W; the paper calls lam mu
    collaborate  the mean by size of what was uploaded
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
