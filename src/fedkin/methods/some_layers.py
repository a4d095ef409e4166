"""Clients that share only some layers of their models: FedPer (Arivazhagan et al. 2019), LG-FedAvg (Liang et al. 2020),
FedRep (Collins et al. 2021) and FedBABU (Oh et al. 2022).

Round:
    select       `count` clients uniformly
    train        FedPer, LG-FedAvg: SGD of all layers. FedRep: the head, then the body. FedBABU: the body alone
    collaborate  the mean by size of the shared layers: the body or, in LG-FedAvg, the head
"""

from fedkin.collaborate import Mean, Shared
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD, HeadThenBody


def fedper(
    share: str = "body", count: int = 20, eta: float = 0.02, steps: int | None = 20, epochs: int | None = None
) -> Method:
    """The body is common, each client has a head of its own."""
    train = SGD(eta=eta, steps=None if epochs else steps, epochs=epochs)
    return Method("fedper", Uniform(count=count), train, Everyone(), Shared(Mean(), share))


def lgfedavg(
    share: str = "head", count: int = 20, eta: float = 0.02, steps: int | None = 20, epochs: int | None = None
) -> Method:
    """The head is common, each client has a body of its own."""
    train = SGD(eta=eta, steps=None if epochs else steps, epochs=epochs)
    return Method("lgfedavg", Uniform(count=count), train, Everyone(), Shared(Mean(), share))


def fedrep(
    head: float = 0.75, count: int = 20, eta: float = 0.02, steps: int | None = 20, epochs: int | None = None
) -> Method:
    """As FedPer, but a client trains its head first, with the body as it was sent, and the body then."""
    train = HeadThenBody(eta=eta, steps=None if epochs else steps, epochs=epochs, head=head)
    return Method("fedrep", Uniform(count=count), train, Everyone(), Shared(Mean(), "body"))


def fedbabu(count: int = 20, eta: float = 0.02, steps: int | None = 20, epochs: int | None = None) -> Method:
    """The body is common, and all clients have the head of the first model; clients fine-tune all of it."""
    train = HeadThenBody(eta=eta, steps=None if epochs else steps, epochs=epochs, head=0.0)
    return Method("fedbabu", Uniform(count=count), train, Everyone(), Shared(Mean(), "body", "first"))
