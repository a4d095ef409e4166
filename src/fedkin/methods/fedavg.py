"""FedAvg (McMahan et al. 2017): the selected clients train the common model, and their mean is the next common model.

Round:
    select       `count` clients uniformly
    train        SGD from the common model
    collaborate  the mean by size of what was uploaded
"""

from fedkin.collaborate import Mean
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD


def fedavg(count: int = 20, eta: float = 0.02, steps: int | None = 20, epochs: int | None = None) -> Method:
    return Method(
        name="fedavg",
        select=Uniform(count=count),
        train=SGD(eta=eta, steps=None if epochs else steps, epochs=epochs),
        keep=Everyone(),
        collaborate=Mean(),
    )
