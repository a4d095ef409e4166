"""IFCA (Ghosh et al. 2020): k models; each client trains the one that fits its samples best.

Round:
    select       `count` clients uniformly; they are sent all k models
    train        SGD from the model with the smallest loss on the client's training samples
    collaborate  every model becomes the mean by size of the clients that chose it
"""

from fedkin.collaborate import Several
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Choosing


def ifca(k: int = 2, count: int = 20, eta: float = 0.02, steps: int | None = 20, epochs: int | None = None) -> Method:
    return Method(
        name="ifca",
        select=Uniform(count=count),
        train=Choosing(eta=eta, steps=None if epochs else steps, epochs=epochs),
        keep=Everyone(),
        collaborate=Several(k),
    )
