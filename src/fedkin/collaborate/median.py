"""One model for all: the median of the replies, number by number (Yin et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.collaborate.mean import OneModel
from fedkin.collaborate.mixing import blocks
from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.parts import Reply, Sent, Slot, Task


def by_number(stack: Model, of_sorted: Callable[[Tensor], Tensor]) -> Model:
    """`of_sorted` of the clients' values of every single number, sorted along the first axis; in blocks."""

    def one(value: Tensor) -> Tensor:
        flat = value.reshape(len(value), -1)
        parts = [of_sorted(flat[:, at].sort(0).values) for at in blocks(*flat.shape)]
        return torch.cat(parts).reshape(value.shape[1:])

    return tree.mapped(one, stack)


def middle(values: Tensor) -> Tensor:
    """The middle row of sorted ones, or the mean of the two middle rows."""
    n = len(values)
    return (values[(n - 1) // 2] + values[n // 2]) / 2


@dataclass(frozen=True)
class Median(OneModel):
    """Every number of the new model is the median of the replies that count at all, each alike."""

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        counted = reply.only(kept > 0)
        return slot | {"model": by_number(counted.upload["model"], middle)} if len(counted.ids) else slot
