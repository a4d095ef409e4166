"""What clients hold before training, which of some clients others are, and the replies of all chunks as one."""

from __future__ import annotations

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.messages import Message, Model, Reply, Sent


def held(sent: Message, got: Tensor, mine: Message, m: int) -> Model:
    """Return the models that m clients hold before training: what they were sent or, if nothing, their own."""
    start = mine.get("model", {})
    if "model" not in sent:
        return start
    at = got.nonzero().reshape(-1).to(next(iter(sent["model"].values())).device)
    own = {
        name: start[name] if start else value.new_zeros(m, *value.shape[1:]) for name, value in sent["model"].items()
    }
    return {name: value.index_copy(0, at, sent["model"][name]) for name, value in own.items()}


def completed(sent: Message, mine: Message, got: Tensor, first: Model) -> Message:
    """Return what clients of the mask `got` were sent with the layers of the model that were not sent: their own or,
    where they hold no model, those of the first one."""
    if "model" not in sent or len(sent["model"]) == len(first):
        return sent
    own = tree.rows(mine["model"], got) if "model" in mine else tree.repeated(first, int(got.sum()))
    return sent | {"model": {name: sent["model"].get(name, value) for name, value in own.items()}}


def returned(upload: Message, sent: Sent) -> Message:
    """Return what clients upload without the layers of the model that they were not sent."""
    down = sent.own.get("model", sent.shared.get("model"))
    if down is None or "model" not in upload or len(down) == len(upload["model"]):
        return upload
    return upload | {"model": {name: upload["model"][name] for name in down}}


class Gathering:
    """The replies of all chunks as one, sorted by client. Each upload is copied once, to its place.

    `ids` has the clients that reply, in ascending order.
    """

    def __init__(self, ids: Tensor):
        self.ids = ids
        self.found: Reply | None = None

    def take(self, reply: Reply, lent: bool) -> None:
        """Take the replies of some clients. `lent`: they lie in memory that will be written over."""
        if not lent and torch.equal(reply.ids, self.ids):
            self.found = reply
            return
        if self.found is None:
            upload = tree.each(lambda model: tree.mapped(self.room, model), reply.upload)
            self.found = Reply(self.ids, upload, {name: self.room(value) for name, value in reply.report.items()})
        at = among(self.ids, reply.ids)
        for name, model in reply.upload.items():
            for key, value in model.items():
                put(self.found.upload[name][key], at, value)
        for name, value in reply.report.items():
            put(self.found.report[name], at, value)

    def room(self, value: Tensor) -> Tensor:
        """Return room for such a value of every client that replies."""
        return value.new_empty((len(self.ids), *value.shape[1:]))

    def whole(self) -> Reply:
        """Return all replies."""
        return Reply(torch.zeros(0, dtype=torch.int64), {}, {}) if self.found is None else self.found


def among(ids: Tensor, some: Tensor) -> Tensor | slice:
    """Return where some clients stand among the ascending `ids`: as a slice if they follow one another."""
    at = torch.searchsorted(ids, some)
    first, last = int(at[0]), int(at[-1])
    run = last - first == len(at) - 1 and bool((at.diff() == 1).all())
    return slice(first, last + 1) if run else at


def put(into: Tensor, at: Tensor | slice, value: Tensor) -> None:
    """Copy rows to their places. A slice is copied several times faster than places one by one."""
    if isinstance(at, slice):
        into[at].copy_(value)
    else:
        into.index_copy_(0, at.to(into.device), value)


def mask_of(ids: Tensor, some: Tensor) -> Tensor:
    """Return which of `ids` are among `some`; where they are the same, quickly."""  # (m,) bool
    return torch.ones(len(ids), dtype=torch.bool) if torch.equal(ids, some) else torch.isin(ids, some)
