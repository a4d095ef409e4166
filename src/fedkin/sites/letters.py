"""What the server and the sites hand to each other, whatever carries it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from fedkin.errors import BadInput, require

TENSOR = "tensor"  # {"tensor": "3"} in facts stands for the tensor called 3


@dataclass(frozen=True)
class Request:
    """What a site is asked. `facts` are JSON; where they speak of a tensor, it lies in `tensors`."""

    id: str  # no two requests have the same
    do: str
    facts: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)

    @staticmethod
    def of(id: str, do: str, value: Mapping[str, Any]) -> Request:
        """Write a request with this value, nested dictionaries and lists of JSON and tensors."""
        return Request(id, do, *packed(value))

    def value(self) -> dict[str, Any]:
        """Return what was written, with its tensors in their places."""
        found: dict[str, Any] = unpacked(self.facts, self.tensors)
        return found


@dataclass(frozen=True)
class Answer:
    """What a site answers, under its name, to the request with the id `to`."""

    site: str
    to: str
    facts: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)

    @staticmethod
    def of(site: str, to: str, value: Mapping[str, Any]) -> Answer:
        """Write an answer with this value, nested dictionaries and lists of JSON and tensors."""
        return Answer(site, to, *packed(value))

    def value(self) -> dict[str, Any]:
        """Return what was written, with its tensors in their places."""
        found: dict[str, Any] = unpacked(self.facts, self.tensors)
        return found


@dataclass(frozen=True)
class Failure:
    """Why there is no answer."""

    reason: str


class Transport(Protocol):
    """Carries requests to sites, and their answers back."""

    def gather(self, request: Request, timeout: float) -> list[Answer]:
        """Ask everyone who is there, whoever it is, and return the answers that came in this many seconds.

        From then on the transport knows whom to ask for by the names under which they answered.
        """
        ...

    def exchange(self, requests: Mapping[str, Request], timeout: float) -> dict[str, Answer | Failure]:
        """Ask sites by name, all at once, and return what each answered in this many seconds, or why it did not."""
        ...


def packed(value: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the value as JSON, and the tensors that stood in it. One that stood there several times is there once."""
    tensors: dict[str, Tensor] = {}
    known: dict[tuple[Any, ...], str] = {}

    def written(part: Any) -> Any:
        if isinstance(part, Tensor):
            plain = part.detach().cpu()
            same = plain.data_ptr(), plain.shape, plain.stride(), plain.dtype
            if same not in known:
                known[same] = str(len(tensors))
                tensors[known[same]] = plain.contiguous()
                held.append(plain)
            return {TENSOR: known[same]}
        if isinstance(part, Mapping):
            return {str(name): written(inner) for name, inner in part.items()}
        return [written(inner) for inner in part] if isinstance(part, list | tuple) else part

    held: list[Tensor] = []  # an address means a tensor only as long as that tensor lives
    facts = json.loads(json.dumps(written(value)))
    return facts, tensors


def unpacked(facts: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Return the inverse of `packed`; refuses facts that speak of a tensor that is not there."""
    if isinstance(facts, dict):
        if set(facts) == {TENSOR} and isinstance(facts[TENSOR], str):
            require(facts[TENSOR] in tensors, "A letter speaks of a tensor that did not come with it.")
            return tensors[facts[TENSOR]]
        return {name: unpacked(inner, tensors) for name, inner in facts.items()}
    return [unpacked(inner, tensors) for inner in facts] if isinstance(facts, list) else facts


def check_like(found: Any, like: Mapping[str, Any], what: str) -> None:
    """Refuse nested dictionaries of tensors whose names, shapes or types are not those of `like`, or whose numbers are
    not finite. `what` begins the sentence."""
    same = isinstance(found, Mapping) and set(found) == set(like)
    if not same:
        had = ", ".join(sorted(map(str, found))) if isinstance(found, Mapping) else type(found).__name__
        raise BadInput(f"{what} has {had or 'nothing'} instead of {', '.join(sorted(like))}.")
    for name, wanted in like.items():
        if isinstance(wanted, Mapping):
            check_like(found[name], wanted, f"{what}, {name},")
            continue
        value = found[name]
        require(isinstance(value, Tensor), f"{what} has no numbers in '{name}'.")
        fits = value.shape == wanted.shape and value.dtype == wanted.dtype
        there, here = ((tuple(one.shape), str(one.dtype).removeprefix("torch.")) for one in (value, wanted))
        require(fits, f"{what} has {there} in '{name}' instead of {here}.")
        require(torch.isfinite(value).all(), f"{what} has numbers in '{name}' that are not finite.")
