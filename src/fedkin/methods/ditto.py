"""Ditto (Li et al. 2021): FedAvg for the common model, and at each client a private model with a pull towards it.

Round:
    select       `count` clients uniformly
    train        w by SGD from W; v by SGD with a pull of strength lam towards W
    collaborate  the mean of the w_i by size
"""

from fedkin.collaborate import Mean
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import TwoStreams


def ditto(lam: float = 1.0, count: int = 20, eta: float = 0.02, eta_v: float | None = None, steps: int = 20) -> Method:
    return Method(
        name="ditto",
        select=Uniform(count=count),
        train=TwoStreams(lam=lam, eta=eta, eta_v=eta_v, steps=steps),
        keep=Everyone(),
        collaborate=Mean(),
    )
