"""Local: every client trains alone. Every comparison has a row of it."""

from dataclasses import replace

from fedkin.collaborate import Nothing
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD


def local(eta: float = 0.02, steps: int | None = 20, epochs: int | None = None) -> Method:
    """All clients train in every round."""
    return Method(
        name="local",
        select=Uniform(fraction=1.0),
        train=SGD(eta=eta, steps=None if epochs else steps, epochs=epochs),
        keep=Everyone(),
        collaborate=Nothing(),
    )


def local_matched(count: int = 20, eta: float = 0.02, steps: int | None = 20, epochs: int | None = None) -> Method:
    """Local in which `count` clients train in a round. It takes as many steps in all as a method that selects as many
    clients."""
    return replace(local(eta, steps, epochs), name="local_matched", select=Uniform(count=count))


def alone(method: Method) -> Method:
    """Local with the steps, the batches and the rate of the clients of another method."""
    return replace(local(), train=SGD(**method.train.alone()))


def matched(method: Method) -> Method:
    """Local in which a client trains in the same rounds as in another method, and so takes as many steps in all."""
    return replace(alone(method), name="local_matched", select=method.select, trains=method.trains)
