"""Per-FedAvg (Fallah et al. 2020): it learns a common model that is good after one step at the client.

Round:
    select       `count` clients uniformly
    train        steps on the loss after one step of rate alpha (`train/maml.py`)
    collaborate  the mean by size of what was uploaded
"""

from typing import Literal

from fedkin.collaborate import Mean
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import MAML


def perfedavg(
    alpha: float = 0.03, eta: float = 0.003, order: Literal["FO", "HF"] = "FO", count: int = 20, steps: int = 20
) -> Method:
    return Method(
        name="perfedavg",
        select=Uniform(count=count),
        train=MAML(alpha=alpha, eta=eta, order=order, steps=steps),
        keep=Everyone(),
        collaborate=Mean(),
    )
