"""PFedRe: updates that point to other data than most updates do not count; every client also trains a model of its own.

Round tau:
    select       all clients; they are sent omega
    train        omega_i = SGD(omega) and, on the same batches, beta_i <- beta_i - delta g(beta_i)
    keep         invert every update to dummy data (3); the score of a client is how far its dummies are from those of
                 the others (4); the majority of the 2-median clustering of the scores counts (5)
    collaborate  the mean by size of the omega_i that count
"""

from dataclasses import replace
from typing import Literal

from fedkin.collaborate import Mean
from fedkin.errors import require
from fedkin.keep import Alignment, Oracle, Relevance, Robust
from fedkin.methods.bases import require_method
from fedkin.methods.fedavg import fedavg
from fedkin.parts import Keep, Method
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
    labels: Literal["fixed", "learned"] = "fixed",
    after: int | None = None,
    who: Literal["irrelevant", "relevant"] = "irrelevant",
) -> Method:
    """The method of the paper or, with a `base`, the base method with PFedRe's filter.

    `beta` says what the personal model is (A-R5): trained on the client's data alone, as in the paper's box ("local"),
    started at omega in every round ("finetune"), or pulled towards omega with strength `lam` ("ditto"). `labels` says
    whether the labels of the dummy data stay as they are or are fitted too ("learned"). With `after`, clients that were
    found to be `who` in more than half of the first `after` rounds take part no longer (Fig. 6).
    """
    require_method(base)
    keep = Relevance(samples=samples, iterations=iterations, rate=rate, labels=labels, min_gap=None)  # the paper's rule
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
    """As `pfedre`, with a filter that compares the direction of each update with how the model has moved so far.

    This filter is not in the paper. It needs no inversion and is cheaper; where labels were flipped, its AUC was at
    least as good. Huge updates fool it, so `multikrum` is the safer default (docs/papers/pfedre.md).
    """
    return _filtered("pfedre_aligned", base, Alignment())


def pfedre_robust(base: Method | None = None) -> Method:
    """As `pfedre`, with a filter of our own that looks at direction and length of updates over all rounds, and leaves
    hardly anybody out where nobody is irrelevant (docs/papers/robust.md)."""
    return _filtered("pfedre_robust", base, Robust())


def _filtered(name: str, base: Method | None, keep: Keep) -> Method:
    """PFedRe with another filter or, with a `base`, the base with this filter."""
    require_method(base)
    return replace(base or pfedre(), name=name if base is None else f"{name}_{base.name}", keep=keep)


def oracle(base: Method | None = None) -> Method:
    """The base method without the updates of the irrelevant clients. The base is FedAvg if none is given."""
    require_method(base)
    return replace(base or fedavg(), name="oracle" if base is None else f"oracle_{base.name}", keep=Oracle())
