"""CFL (Sattler et al. 2021): FedAvg until it stands still, then in ever smaller clusters of clients that agree.

Round:
    select       a fraction of the clients uniformly, or all
    train        SGD from the model of the client's cluster
    collaborate  the mean of the updates of each cluster; a cluster that is torn is split in two
"""

from fedkin.collaborate import Bipartition
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD


def cfl(
    still: float = 0.4,
    apart: float = 1.6,
    first: int = 20,
    fraction: float = 1.0,
    eta: float = 0.02,
    steps: int | None = 20,
    epochs: int | None = None,
) -> Method:
    return Method(
        name="cfl",
        select=Uniform(fraction=fraction),
        train=SGD(eta=eta, steps=None if epochs else steps, epochs=epochs),
        keep=Everyone(),
        collaborate=Bipartition(still, apart, first),
    )
