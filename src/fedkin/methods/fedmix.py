"""FedMix (Yoon et al. 2021): FedAvg whose clients mix their samples with other clients' averages."""

from fedkin.collaborate import Mean
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import FedMix


def fedmix(lam: float = 0.05, count: int = 20, eta: float = 0.02, steps: int = 20) -> Method:
    return Method("fedmix", Uniform(count=count), FedMix(lam=lam, eta=eta, steps=steps), Everyone(), Mean())
