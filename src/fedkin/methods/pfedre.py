"""PFedRe: updates that point to other data than most are left out; every client also trains a model of its own.

Round tau, all clients: down omega; omega_i = SGD(omega) and, on the same batches, beta_i <- beta_i - delta g(beta_i);
up omega_i. The server inverts every update to dummy data (3), scores each client by how far its dummies are from all
others' (4), keeps the majority of the 2-median clustering of the scores (5), and averages what is left by size.
"""

from dataclasses import replace
from typing import Literal

from fedkin.collaborate import Mean
from fedkin.errors import require
from fedkin.keep import Alignment, Oracle, Relevance
from fedkin.methods.bases import require_method
from fedkin.methods.fedavg import fedavg
from fedkin.parts import Method
from fedkin.select import Dismiss, Uniform
from fedkin.train import TwoStreams


def pfedre(
    base: Method | None = None,
    eta: float = 0.05,
    epochs: int = 1,
    batch: int = 32,
    gamma: float = 0.0,
    eta_v: float | None = None,
    beta: Literal["local", "finetune", "ditto"] = "local",
    lam: float = 1.0,
    fraction: float = 1.0,
    samples: int = 1,
    iterations: int = 50,
    rate: float = 0.1,
    after: int | None = None,
    who: Literal["irrelevant", "relevant"] = "irrelevant",
) -> Method:
    """The paper's method, or its filter in front of any `base`.

    `beta`: what the personal model is: alone with its data as in the paper's box ("local"), begun every round at omega
    ("finetune"), or pulled towards omega by `lam` ("ditto") (A-R5). With `after`, clients that were judged `who` in
    more than half of so many rounds take part no longer (the paper's Fig. 6).
    """
    require_method(base)
    keep = Relevance(samples=samples, iterations=iterations, rate=rate)
    if base is not None:
        given = (eta, epochs, batch, gamma, eta_v, beta, lam, fraction) == (0.05, 1, 32, 0.0, None, "local", 1.0, 1.0)
        require(given, "With a base, PFedRe is only its filter; how clients train and who is selected is the base's.")
        method = replace(base, name=f"pfedre_{base.name}", keep=keep)
    else:
        require(beta in ("local", "finetune", "ditto"), f"beta is 'local', 'finetune' or 'ditto', not '{beta}'.")
        train = TwoStreams(
            eta=eta,
            steps=None,
            epochs=epochs,
            batch=batch,
            gamma=gamma,
            eta_v=eta_v,
            lam=lam if beta == "ditto" else 0.0,
            batches="same",
            restart=beta == "finetune",
        )
        method = Method("pfedre", Uniform(fraction=fraction), train, keep, Mean())
    return method if after is None else replace(method, select=Dismiss(after, who, method.select))


def pfedre_aligned(base: Method | None = None) -> Method:
    """PFedRe, or its filter in front of any `base`, by alignment with the model's way so far instead of inversion: not
    in the paper, cheaper, and at least as good by AUC where we measured it (docs/papers/pfedre.md)."""
    method = pfedre(base)
    return replace(method, name=method.name.replace("pfedre", "pfedre_aligned", 1), keep=Alignment())


def oracle(base: Method | None = None) -> Method:
    """The base method, FedAvg unless given, without the irrelevant clients, as only the truth can tell them."""
    require_method(base)
    chosen = base or fedavg()
    return replace(chosen, name="oracle" if base is None else f"oracle_{base.name}", keep=Oracle())
