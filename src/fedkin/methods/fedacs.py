"""FedACS: attention among clients whose models are more similar than a threshold.

Round:
    select       a fraction of the clients uniformly
    collaborate  s_ij = cos(w_i, w_j) over the selected; delta = the p-quantile of all s_ij (3);
                 u_i = the mean of the w_j with s_ij > delta, weighted by s_ij (4)
    train        w_i by plain SGD from u_i (5)
"""

from typing import Literal

from fedkin.collaborate import SimilarityThreshold
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD


def fedacs(
    p: float | None = 0.9,
    fraction: float = 1.0,
    epochs: int = 5,
    batch: int = 10,
    eta: float = 0.01,
    pool: Literal["selected", "all"] = "selected",
    similarity: Literal["model", "update"] = "model",
    alpha: float = 1.0,
    gamma: float = 0.0,
) -> Method:
    """With `gamma` the server's step alpha and the clients' rate eta are both divided by 1 + gamma (k - 1) in round k,
    so that lambda = alpha / eta of the paper's theorem stays the same."""
    return Method(
        name="fedacs",
        select=Uniform(fraction=fraction),
        train=SGD(eta=eta, steps=None, epochs=epochs, batch=batch, gamma=gamma),
        keep=Everyone(),
        collaborate=SimilarityThreshold(p, pool, similarity, alpha, gamma),
    )
