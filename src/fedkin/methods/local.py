"""Local: every client trains alone. The row every comparison needs."""

from dataclasses import replace

from fedkin.collaborate import Nothing
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD


def local(eta: float = 0.02, steps: int | None = 20, epochs: int | None = None) -> Method:
    """All clients train every round, with as many steps as the compared method's clients take in one round."""
    return Method(
        name="local",
        select=Uniform(fraction=1.0),
        train=SGD(eta=eta, steps=None if epochs else steps, epochs=epochs),
        keep=Everyone(),
        collaborate=Nothing(),
    )


def local_matched(count: int = 20, eta: float = 0.02, steps: int | None = 20, epochs: int | None = None) -> Method:
    """Local in which only `count` clients train a round: as many steps in all as a method that selects so many."""
    return replace(local(eta, steps, epochs), name="local_matched", select=Uniform(count=count))


def alone(method: Method) -> Method:
    """Local with the steps, batches and rate of another method's clients."""
    return replace(local(), train=SGD(**method.train.alone()))


def matched(method: Method) -> Method:
    """Local whose clients train just when another method's would, so that both take the same steps in all."""
    return replace(alone(method), name="local_matched", select=method.select, trains=method.trains)
