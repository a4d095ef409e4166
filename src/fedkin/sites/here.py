"""Sites in this process: to try a federation out, and for tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import torch

from fedkin.sites.letters import Answer, Failure, Request
from fedkin.sites.site import Site

Letter = TypeVar("Letter", Request, Answer)


class Here:
    """Calls sites in this process. Each is made anew for every request, as Flower does it."""

    def __init__(self, make: Mapping[str, Callable[[], Site]]):
        self.make = dict(make)
        self.exchanges = 0

    def gather(self, request: Request, timeout: float) -> list[Answer]:
        answers = [self.answer(name, request) for name in self.make]
        return [answer for answer in answers if isinstance(answer, Answer)]

    def exchange(self, requests: Mapping[str, Request], timeout: float) -> dict[str, Answer | Failure]:
        self.exchanges += 1
        return {name: self.answer(name, request) for name, request in requests.items()}

    def answer(self, name: str, request: Request) -> Answer | Failure:
        """Let one site answer; nothing that it holds is shared with the server."""
        if name not in self.make:
            return Failure("It is not there.")
        try:
            return copied(self.make[name]().answer(copied(request)))
        except Exception as error:  # a site may run parts of its own, which may raise anything
            return Failure(f"It failed: {type(error).__name__}: {error}")


def copied(letter: Letter) -> Letter:
    """Return a letter as it would arrive from another machine."""
    facts = json.loads(json.dumps(letter.facts))
    return replace(letter, facts=facts, tensors={name: torch.clone(value) for name, value in letter.tensors.items()})
