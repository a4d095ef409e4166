"""FedMix (Yoon et al. 2021): FedAvg in which clients mix their samples with averages of other clients' samples.

Before round 1 each client sends averages of its samples, and all clients get them. Round:
    select       `count` clients uniformly
    train        SGD on the mixup loss (`train/fedmix.py`)
    collaborate  the mean by size of what was uploaded
"""

from fedkin.collaborate import Mean
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import FedMix


def fedmix(lam: float = 0.05, count: int = 20, eta: float = 0.02, steps: int = 20) -> Method:
    return Method("fedmix", Uniform(count=count), FedMix(lam=lam, eta=eta, steps=steps), Everyone(), Mean())
