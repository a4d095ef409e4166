"""Which models of sites count: those with the right names, shapes and types, finite, and not far too large."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Batch, Message, Model
from fedkin.errors import BadInput
from fedkin.messages import Work
from fedkin.parts import Train
from fedkin.sites.letters import check_like

TooLarge = Literal["drop", "clip"]  # what happens to a model that is far too large


class Fitting(NamedTuple):
    """What sites sent, by site: what counts, why other things do not, and why some count only shortened."""

    good: dict[int, Message]
    why: dict[int, str]
    clipped: dict[int, str]


def like(part: Train, model: Model, own: bool, sent: Message | None) -> Message:
    """Return an upload as this part makes it, of a client that takes no step.

    So the server knows the names, shapes and types of what any part sends, without believing a site.
    """
    mine, first = part.slots(model, own), next(iter(model.values()))
    done = (torch.ones((), dtype=first.dtype) for _ in range(3))
    some = None if sent is None or "model" not in sent else sent["model"]
    if sent is not None and some is not None:
        sent = sent | {"model": {name: some.get(name, value) for name, value in model.items()}}
    if sent is not None and part.at_hand:
        sent = part.meet(sent, mine, {}, Blind(model))
    upload = part.end(part.begin(sent, mine), sent, mine, Work(*done))[1]
    return upload if some is None else upload | {"model": {name: upload["model"][name] for name in some}}


@dataclass(frozen=True)
class Blind:
    """The objective of a client without samples: every loss is zero."""

    model: Model

    def logits(self, model: Model, batch: Batch) -> Tensor:
        return torch.zeros(0)

    def loss(self, model: Model, batch: Batch) -> Tensor:
        return next(iter(self.model.values())).new_zeros(())

    def grad(self, model: Model, batch: Batch) -> Model:
        return tree.zeros(model)


def fitting(
    found: Mapping[int, Any],
    wanted: Message,
    largest: float | None,
    too_large: TooLarge = "drop",
    what: str = "Its upload",
) -> Fitting:
    """Return what counts of what sites sent, which is to be like `wanted`; `what` begins the sentences of the others.

    It is too large if its length is more than `largest` times the median length of the others. Then it does not count,
    or is shortened to that median.
    """
    good: dict[int, Message] = {}
    why: dict[int, str] = {}
    clipped: dict[int, str] = {}
    for number, upload in found.items():
        try:
            check_like(upload, wanted, what)
            good[number] = {name: {key: upload[name][key] for key in model} for name, model in wanted.items()}
        except BadInput as error:
            why[number] = str(error)
    lengths = {number: length(upload) for number, upload in good.items()}
    for number, mine in lengths.items() if largest is not None else ():
        others = torch.tensor([value for other, value in lengths.items() if other != number])
        usual = float(others.median()) if len(others) else mine
        if largest is not None and mine > largest * usual > 0:
            sentence = f"{what} is {mine / usual:.0f} times as large as those of the others"
            if too_large == "clip":
                good[number] = scaled(good[number], usual / mine)
                clipped[number] = f"{sentence}, and is shortened to their length."
            else:
                why[number] = f"{sentence}."
                del good[number]
    return Fitting(good, why, clipped)


def length(upload: Message) -> float:
    """Return the length of the uploaded model as a vector, or of all that was uploaded where that is no model."""
    values = upload["model"].values() if "model" in upload else tree.flat(upload).values()
    return float(sum(float(value.double().square().sum()) for value in values) ** 0.5)


def scaled(upload: Message, by: float) -> Message:
    """Return an upload with all its numbers multiplied."""
    return tree.each(lambda model: tree.mapped(lambda value: value * by, model), upload)
