"""What clients hold before training, and the replies of all chunks as one."""

from __future__ import annotations

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.messages import Message, Model, Reply


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


def gathered(replies: list[Reply]) -> Reply:
    """Join the replies of all chunks, sorted by client."""
    if not replies:
        return Reply(torch.zeros(0, dtype=torch.int64), {}, {})
    ids = torch.cat([reply.ids for reply in replies])
    upload = {name: tree.joined([reply.upload[name] for reply in replies]) for name in replies[0].upload}
    report = {name: torch.cat([reply.report[name] for reply in replies]) for name in replies[0].report}
    whole = Reply(ids, upload, report)
    return whole if (ids.diff() > 0).all() else whole.only(ids.argsort())
