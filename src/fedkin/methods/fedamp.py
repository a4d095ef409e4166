"""FedAMP and HeurFedAMP (Huang et al. 2021): each client is pulled towards a mixture of models that are like its own.

Round:
    collaborate  u_i = sum_j xi_ij w_j, with larger weights xi_ij for more similar models
    train        w_i by SGD on f_i + lam / 2 |w - u_i|^2
"""

from typing import Literal

from fedkin.collaborate import HeuristicMessagePassing, MessagePassing
from fedkin.collaborate.mixing import Granularity
from fedkin.errors import require
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Prox


def fedamp(
    alpha: float = 1.0,
    sigma: float = 1.0,
    lam: float = 1.0,
    eta: float = 0.02,
    steps: int = 20,
    start: Literal["sent", "own"] = "sent",
    granularity: Granularity = "model",
) -> Method:
    """The client minimises f_i + lam / (2 alpha) |w - u_i|^2. All clients take part, because FedAMP is cross-silo.
    `granularity` says whether whole models are weighed, as in the paper, or each layer or tensor by itself."""
    require(alpha > 0, f"alpha must be positive, not {alpha}.")
    return Method(
        name="fedamp",
        select=Uniform(fraction=1.0),
        train=Prox(lam=lam / alpha, eta=eta, steps=steps, start=start),
        keep=Everyone(),
        collaborate=MessagePassing(alpha, sigma, granularity),
    )


def heurfedamp(
    self_weight: float = 0.1,
    sigma: float = 50.0,
    lam: float = 5.0,
    count: int = 20,
    eta: float = 0.02,
    steps: int = 20,
    trains: Literal["selected", "everyone"] = "everyone",
    granularity: Granularity = "model",
) -> Method:
    """Softmax weights by the cosines of whole models, with a fixed weight for the client's own model. `granularity`
    says whether whole models are weighed, as in the paper, or each layer or tensor by itself."""
    return Method(
        name="heurfedamp",
        select=Uniform(count=count),
        train=Prox(lam=lam, eta=eta, steps=steps),
        keep=Everyone(),
        collaborate=HeuristicMessagePassing(self_weight, sigma, granularity),
        trains=trains,
    )
