"""Sites that are late, dead, lying or wrong, in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from fedkin.sites import Answer, Failure, Here, Request, Site

Fault = Callable[[Answer], Answer]  # what a bad site sends in place of its answer


class Faulty(Here):
    """What goes wrong: `fails(name, round)` gives a fault, 'dead', 'late', 'lost', or nothing.

    Dead: it never hears of it. Lost: it works, but its answer never arrives. Late: its answer arrives in place of the
    next one. A round is that of the training that is asked for; 0 where none is.
    """

    def __init__(
        self, make: Mapping[str, Callable[[], Site]], fails: Callable[[str, int], Fault | str | None] = lambda *_: None
    ):
        super().__init__(make)
        self.fails, self.late = fails, dict[str, Answer | Failure]()
        self.asked: list[dict[str, Request]] = []

    def exchange(self, requests: Mapping[str, Request], timeout: float) -> dict[str, Answer | Failure]:
        self.asked.append(dict(requests))
        return super().exchange(requests, timeout)

    def answer(self, name: str, request: Request) -> Answer | Failure:
        training = request.facts.get("train") or {}
        fault = self.fails(name, training.get("round", 0)) if request.do == "work" else None
        if fault == "dead":
            return Failure("It did not answer.")
        if name in self.late and request.do == "work":
            super().answer(name, request)
            return self.late.pop(name)
        answer = super().answer(name, request)
        if fault in ("late", "lost"):
            self.late.update({name: answer} if fault == "late" else {})
            return Failure("It did not answer in time.")
        return fault(answer) if callable(fault) and isinstance(answer, Answer) else answer


def changed(answer: Answer, change: Callable[[dict[str, Any]], None]) -> Answer:
    """The answer with something changed in what it says."""
    value = answer.value()
    if "upload" in value:
        change(value)
    return Answer.of(answer.site, answer.to, value)


def on_upload(change: Callable[[dict[str, torch.Tensor]], None]) -> Fault:
    """Change the uploaded model, and what is shown of it."""

    def fault(answer: Answer) -> Answer:
        def both(value: dict[str, Any]) -> None:
            model = dict(value["upload"]["model"])
            change(model)
            value["upload"]["model"] = model

        return changed(answer, both)

    return fault


def rename(model: dict[str, torch.Tensor]) -> None:
    model["9.weight"] = model.pop("0.weight")


def short(model: dict[str, torch.Tensor]) -> None:
    model["0.weight"] = model["0.weight"][:1]


def whole(model: dict[str, torch.Tensor]) -> None:
    model["0.weight"] = model["0.weight"].long()


def nan(model: dict[str, torch.Tensor]) -> None:
    model["0.bias"] = model["0.bias"] * torch.nan


def huge(model: dict[str, torch.Tensor]) -> None:
    for name in model:
        model[name] = 100 * model[name]


def shows_more(value: dict[str, Any]) -> None:
    value["shown"] = {name: 100 * tensor for name, tensor in value["upload"]["model"].items()}


def no_upload(value: dict[str, Any]) -> None:
    del value["upload"]


FAULTS: dict[str, tuple[Fault, str]] = {  # and a word of the sentence that names it
    "another name": (lambda answer: replace(answer, site="a"), "under the name of 'a'"),
    "names": (on_upload(rename), "9.weight"),
    "shapes": (on_upload(short), "instead of ((8, 6), 'float64')"),
    "types": (on_upload(whole), "int64"),
    "nan": (on_upload(nan), "not finite"),
    "100 times as large": (on_upload(huge), "times as large"),
    "shown 100 times as large": (lambda answer: changed(answer, shows_more), "What it shows is"),
    "nothing": (lambda answer: changed(answer, no_upload), "instead of model"),
    "a text": (lambda answer: changed(answer, lambda value: value.update(upload="model")), "str"),
    "a round it did not play": (lambda answer: changed(answer, lambda value: value.update(held=77)), "holds round 77"),
}
