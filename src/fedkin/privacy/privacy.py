"""What is asked for by --dp, and which methods it fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import Any, TypeVar

from fedkin.collaborate import LastUploads
from fedkin.contract import redefines
from fedkin.errors import BadInput, require, unknown
from fedkin.parts import Method, Train

T = TypeVar("T")
TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True)
class Privacy:
    """Each update is clipped to the length `clip`, and normal noise of deviation noise * clip is added to each number.

    `delta` is the probability that the counted epsilon does not hold. `losses` allows clients to tell losses and scores
    of their samples, which are not noised.
    """

    clip: float
    noise: float
    delta: float = 1e-5
    losses: bool = False

    def __post_init__(self) -> None:
        for name in ("clip", "noise"):
            value = getattr(self, name)
            require(isfinite(value) and value > 0, f"{name} of --dp is a number above 0, not {value}.")
        require(0 < self.delta < 1, f"delta of --dp is a probability between 0 and 1, not {self.delta}.")

    def __str__(self) -> str:
        said = f"clip={self.clip},noise={self.noise},delta={self.delta}"
        return said + (",losses=true" if self.losses else "")


def read(text: str) -> Privacy:
    """Return what a text as 'clip=1.0,noise=0.8' asks for; refuses what makes no sense."""
    return from_text(Privacy, text, ("clip", "noise"), "--dp clip=1.0,noise=0.8")


def from_text(kind: type[T], text: str, needed: tuple[str, ...], example: str) -> T:
    """Make a record of numbers and truths from 'name=value,name=value'. The names in `needed` must be there."""
    known = {entry.name: entry.type for entry in fields(kind)}  # type: ignore[arg-type]
    given: dict[str, Any] = {}
    for word in str(text).split(","):
        name, equals, value = (piece.strip() for piece in word.partition("="))
        require(bool(equals), f"'{word.strip()}' says no value; write it as {example}.")
        if name not in known:
            raise unknown(f"word of '{example}'", name, known)
        require(name not in given, f"'{name}' stands twice in '{text}'.")
        given[name] = value_of(name, value, TRUTHS if known[name] == "bool" else None)
    missing = [name for name in needed if name not in given]
    require(not missing, f"'{text}' does not say {' and '.join(missing)}; write it as {example}.")
    return kind(**given)


def value_of(name: str, value: str, truths: Mapping[str, bool] | None) -> float | bool:
    """Return a number or, with `truths`, one of these words."""
    if truths is not None:
        require(value.lower() in truths, f"{name} is true or false, not '{value}'.")
        return truths[value.lower()]
    try:
        return float(value)
    except ValueError:
        raise BadInput(f"{name} is a number, not '{value}'.") from None


def protected(method: Method, privacy: Privacy) -> Method:
    """Return the method so that nothing leaves a client but noised uploads; refuses one that needs more than these.

    A method that would ask clients for their current models looks at their last uploads in place of them.
    """
    name, train = method.name, method.train
    require(
        not train.pools and not redefines(train, Train.prepare),
        f"In '{name}' clients send {'samples' if train.pools else 'averages of samples'} before round 1, which --dp "
        "does not protect; choose another method.",
    )
    require(
        method.collaborate.gives.start,
        f"In '{name}' each client tells what it makes of the models it is sent, which --dp does not protect; choose "
        "another method.",
    )
    told = ", ".join(method.needs.reports)
    require(
        not told or privacy.losses,
        f"In '{name}' each client tells its {told}, which --dp does not protect; allow it by losses=true in --dp, or "
        "choose another method.",
    )
    if not method.needs.current:
        return method
    return replace(method, collaborate=LastUploads(method.collaborate))


def unprotected(method: Method) -> Method:
    """Return the method as it was before `protected`, whose fields stand where its user knows them."""
    wrapped = isinstance(method.collaborate, LastUploads) and method.collaborate.base.needs.current
    return replace(method, collaborate=method.collaborate.base) if wrapped else method  # type: ignore[attr-defined]
