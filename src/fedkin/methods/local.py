"""Local: every client trains alone. The row every comparison needs."""

from fedkin.collaborate import Nothing
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD


def local(eta: float = 0.02, steps: int | None = 20, epochs: int | None = None, matched: int | None = None) -> Method:
    """All clients train every round, with as many steps as the compared method's clients take in one round.
    `matched=20` lets only 20 clients train a round, so that the number of steps in all is that of a method which
    selects 20."""
    return Method(
        name="local",
        select=Uniform(count=matched) if matched else Uniform(fraction=1.0),
        train=SGD(eta=eta, steps=None if epochs else steps, epochs=epochs),
        keep=Everyone(),
        collaborate=Nothing(),
    )


def alone(method: Method) -> Method:
    """Local with the steps, batches and rate of another method's clients."""
    shared = {name: value for name, value in method.train.values().items() if name in SGD().values()}
    return Method("local", Uniform(fraction=1.0), SGD(**shared), Everyone(), Nothing())  # type: ignore[arg-type]
