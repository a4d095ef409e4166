"""pFedSim (Tan et al. 2023): clients with similar classifiers share their feature extractors.

Round:
    select       `count` clients uniformly
    collaborate  at first the mean of what was uploaded, as in FedAvg; then w_ij ~ -log(1 - similarity of the heads),
                 and the client i is sent the bodies mixed by w_i, with its own head
    train        SGD from what was sent
"""

from fedkin.collaborate import ClassifierSimilarity
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD


def pfedsim(
    warmup: float = 0.5, count: int = 20, eta: float = 0.01, steps: int | None = 20, epochs: int | None = None
) -> Method:
    return Method(
        name="pfedsim",
        select=Uniform(count=count),
        train=SGD(eta=eta, steps=None if epochs else steps, epochs=epochs),
        keep=Everyone(),
        collaborate=ClassifierSimilarity(warmup),
    )
