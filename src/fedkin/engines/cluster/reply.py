"""Replies whose uploads stay with the actors, until somebody looks at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Message, Model
from fedkin.engines.cluster import tensors
from fedkin.engines.cluster.actors import Actors, Call
from fedkin.engines.cluster.worker import Told
from fedkin.messages import Reply


@dataclass(frozen=True)
class Part:
    """The replies of one actor's clients: what is known of them, and where their uploads lie."""

    member: int
    ids: Tensor  # (k,) as the whole federation numbers them
    told: Told
    uploads: Any  # in Ray's memory, which outlives the actor


class Apart(Reply):
    """A reply as any other. `upload` moves all uploads here when it is first asked for; a mean moves partial sums."""

    parts: Sequence[Part]
    order: Tensor  # which of the parts' rows, one part after another, comes first, second, ...
    actors: Actors

    def __init__(self, parts: Sequence[Part], broken: tuple[int, ...], actors: Actors):
        every = torch.cat([part.ids for part in parts])
        order = every.argsort()
        names = parts[0].told.report
        report = {name: torch.cat([part.told.report[name] for part in parts])[order] for name in names}
        known = {
            "ids": every[order],
            "report": report,
            "broken": broken,
            "parts": parts,
            "order": order,
            "actors": actors,
        }
        for name, value in known.items():
            object.__setattr__(self, name, value)

    @cached_property
    def upload(self) -> Message:
        places = [part.uploads for part in self.parts]
        found = [tensors.moved(message, self.actors.device) for message in self.actors.fetched(places)]
        return {name: tree.rows(tree.joined([some[name] for some in found]), self.order) for name in found[0]}

    def mean(self, name: str, weight: Tensor) -> Model:
        if "upload" in self.__dict__:
            return super().mean(name, weight)
        share = (weight.double() / weight.double().sum()).cpu()
        shares = share[self.order.argsort()].split([len(part.ids) for part in self.parts])
        calls = {
            part.member: Call("mean", (part.uploads, name, own)) for part, own in zip(self.parts, shares, strict=True)
        }
        sums = [found[0] for found in self.actors.ask(calls).values()]
        like = self.parts[0].told.like[name]
        total = tree.mapped(lambda *values: torch.stack(values).sum(0), *sums)
        return {key: value.to(self.actors.device, like[key].dtype) for key, value in total.items()}

    def finite(self) -> Tensor:
        return torch.cat([part.told.finite for part in self.parts])[self.order]

    def size(self) -> tuple[int, int]:
        like = self.parts[0].told.like.values()
        numbers, size = tree.size([tree.mapped(lambda value: value.new_empty(value.shape[1:]), one) for one in like])
        return numbers * len(self.ids), size * len(self.ids)
