"""APFL (Deng et al. 2020): each client mixes the common model of FedAvg with a model of its own.

Round:
    select       `count` clients uniformly
    train        w and v by SGD, alpha by its own gradient step (`train/apfl.py`)
    collaborate  the mean of the w_i by size
"""

from typing import Literal

from fedkin.collaborate import Mean
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import APFL


def apfl(
    alpha: float = 0.5,
    count: int = 20,
    eta: float = 0.02,
    steps: int = 20,
    adapt: Literal["first", "every", "never"] = "first",
    mix: Literal["parameter", "output"] = "parameter",
) -> Method:
    return Method(
        name="apfl",
        select=Uniform(count=count),
        train=APFL(alpha=alpha, eta=eta, steps=steps, adapt=adapt, mix=mix),
        keep=Everyone(),
        collaborate=Mean(),
    )
