"""Named methods, a short file a paper: each is a choice of four parts."""

from collections.abc import Callable

from fedkin.errors import unknown
from fedkin.methods.fedavg import fedavg
from fedkin.methods.fedprox import fedprox
from fedkin.methods.local import local, local_matched
from fedkin.parts import Method

METHODS: dict[str, Callable[..., Method]] = {
    "local": local,
    "local_matched": local_matched,
    "fedavg": fedavg,
    "fedprox": fedprox,
}

__all__ = ["METHODS", "fedavg", "fedprox", "local", "local_matched", "named"]


def named(name: str) -> Method:
    """The method of this name with its paper's defaults."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]()
