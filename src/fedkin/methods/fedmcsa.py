"""FedMCSA: self-attention between the components of models, and its ablations.

Round:
    select       `count` clients uniformly; they send their models
    collaborate  psi_{i,.,l} = softmax of sigma cos for every component l (7);
                 the client i is sent w_{i,l} = sum_k psi_{i,k,l} theta_{k,l} (6)
    train        a selected client starts at W_i, which becomes its centre; then *every* client takes R steps of
                 g(theta) + lam (theta - centre) (A-M4)
"""

from dataclasses import replace

from fedkin.collaborate import ComponentAttention, MeanBefore
from fedkin.collaborate.mixing import Granularity
from fedkin.errors import require
from fedkin.keep import Everyone
from fedkin.parts import Method, Who
from fedkin.select import Uniform
from fedkin.train import SGD, Moreau, Prox


def fedmcsa(
    lam: float = 5.0,
    sigma: float = 50.0,
    count: int = 20,
    eta: float = 0.02,
    steps: int = 20,
    granularity: Granularity = "layer",
    trains: Who = "everyone",
    official: bool = False,
) -> Method:
    """The method of the paper. `official=True` is what the authors' code does instead (A-M12): a component is a tensor,
    attention is weighted by size, weight decay is 0.001, the proximal term is always zero, and clients go through their
    mini-batches in a fixed order."""
    given = lam == 5.0 and granularity == "layer"
    require(
        not official or given, "The official FedMCSA has no lam and attends to tensors; leave lam and granularity out."
    )
    if official:
        attention = ComponentAttention(sigma, "tensor", size_weighted=True)
        train: SGD = SGD(eta=eta, steps=steps, weight_decay=0.001, sampler="cyclic")
    else:
        attention, train = ComponentAttention(sigma, granularity), Prox(lam=lam, eta=eta, steps=steps)
    name = "fedmcsa_official" if official else "fedmcsa"
    return Method(name, Uniform(count=count), train, Everyone(), attention, trains=trains)


def fedmcsa_official(sigma: float = 50.0, count: int = 20) -> Method:
    """FedMCSA as the authors' code has it (A-M12)."""
    return fedmcsa(sigma=sigma, count=count, official=True)


def fedmcsa_without_mcsa(lam: float = 5.0, count: int = 20, eta: float = 0.02, steps: int = 20) -> Method:
    """The mean by size of the selected models in place of attention. The paper scores its `global` (A-M8)."""
    return replace(
        fedmcsa(lam, count=count, eta=eta, steps=steps), name="fedmcsa_without_mcsa", collaborate=MeanBefore()
    )


def fedavg_mcsa(sigma: float = 50.0, count: int = 20, eta: float = 0.02, steps: int = 20) -> Method:
    """FedAvg with attention: FedMCSA without the proximal term."""
    plain = fedmcsa(sigma=sigma, count=count)
    return replace(plain, name="fedavg_mcsa", train=SGD(eta=eta, steps=steps))


def pfedme_mcsa(
    sigma: float = 50.0, lam: float = 20.0, eta: float = 0.005, eta_p: float = 0.01, K: int = 5, count: int = 20
) -> Method:
    """pFedMe with attention over the components of the w_i in place of their mean. Clients are scored by theta_i."""
    train = Moreau(lam=lam, eta=eta, eta_p=eta_p, K=K)
    return replace(fedmcsa(sigma=sigma, count=count), name="pfedme_mcsa", train=train)
