"""FedDWA (Liu et al. 2023): each client is sent a mixture of the models that lie nearest to where its own is going.

Round:
    select       a fraction of the clients uniformly, or all
    collaborate  next_i = 2 theta_i - what i was sent; w_ij ~ 1 / |next_i - theta_j|^2, the k largest;
                 the client i is sent sum_j w_ij theta_j
    train        theta_i by plain SGD
"""

from fedkin.collaborate import Ahead
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD


def feddwa(
    k: int = 5, fraction: float = 1.0, eta: float = 0.01, steps: int | None = 20, epochs: int | None = None
) -> Method:
    return Method(
        name="feddwa",
        select=Uniform(fraction=fraction),
        train=SGD(eta=eta, steps=None if epochs else steps, epochs=epochs),
        keep=Everyone(),
        collaborate=Ahead(k),
    )
