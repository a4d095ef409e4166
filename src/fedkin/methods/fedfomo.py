"""FedFomo (Zhang et al. 2021): each client is sent models of others and weighs them by what they are worth to it.

Round:
    select       `count` clients uniformly
    collaborate  each is sent the models of those others that have served it best
    train        theta_b + sum_j w_j (theta_j - theta_b), with w_j ~ max(0, loss less / distance); then SGD from there.
                 theta_b is where the client started last, the theta_j are its own model and those it was sent
"""

from fedkin.collaborate import Offers
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import MixingItself


def fedfomo(
    models: int = 5, count: int = 20, eta: float = 0.02, steps: int | None = 20, epochs: int | None = None
) -> Method:
    return Method(
        name="fedfomo",
        select=Uniform(count=count),
        train=MixingItself(eta=eta, steps=None if epochs else steps, epochs=epochs),
        keep=Everyone(),
        collaborate=Offers(models),
    )
