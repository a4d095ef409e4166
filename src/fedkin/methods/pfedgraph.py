"""pFedGraph (Ye et al. 2023): the server infers who should collaborate with whom, and clients follow.

Round:
    select       `count` clients uniformly, or all
    collaborate  w_i = the projection of p + cos(updates) / (2 lam) onto the simplex;
                 the client i is sent u_i = sum_j w_ij theta_j
    train        theta_i by SGD from u_i on f_i - mu cos(theta_i, u_i)
"""

from fedkin.collaborate import CollaborationGraph
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Aligned


def pfedgraph(
    lam: float = 0.8,
    mu: float = 0.01,
    fraction: float = 1.0,
    eta: float = 0.01,
    steps: int | None = 20,
    epochs: int | None = None,
    official: bool = False,
) -> Method:
    """With `official` what the authors' code does instead: cosines above 0.9 count as 1, and the clients' term has the
    other sign, so that it pushes them away from what they are sent."""
    return Method(
        name="pfedgraph",
        select=Uniform(fraction=fraction),
        train=Aligned(
            eta=eta,
            steps=None if epochs else steps,
            epochs=epochs,
            mu=mu,
            sign="away" if official else "towards",
        ),
        keep=Everyone(),
        collaborate=CollaborationGraph(lam, 0.9 if official else 1.0),
    )
