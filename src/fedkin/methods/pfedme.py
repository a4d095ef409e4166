"""pFedMe (Dinh et al. 2020): personal models in Moreau envelopes around the common model w.

Round:
    train        every client receives w and trains theta_i and w_i (`train/moreau.py`)
    select       `count` clients uniformly; they upload w_i
    collaborate  w <- (1 - beta) w + beta mean of the w_i by size
"""

from fedkin.collaborate import Mean
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Moreau


def pfedme(
    lam: float = 20.0, eta: float = 0.005, eta_p: float = 0.01, K: int = 5, beta: float = 1.0, count: int = 20
) -> Method:
    return Method(
        name="pfedme",
        select=Uniform(count=count),
        train=Moreau(lam=lam, eta=eta, eta_p=eta_p, K=K),
        keep=Everyone(),
        collaborate=Mean(beta=beta),
        trains="everyone",
        receives="everyone",
    )
