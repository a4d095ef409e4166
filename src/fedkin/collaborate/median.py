"""One common model: the median of the replies, separately for each number (Yin et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.collaborate.mean import OneModel
from fedkin.core import tree
from fedkin.core.geometry import blocks
from fedkin.core.tree import Model
from fedkin.messages import Reply, Sent, Slot, Task


def by_number(stack: Model, of_sorted: Callable[[Tensor], Tensor]) -> Model:
    """The model of which each number is `of_sorted` of the clients' values of that number, which are sorted. It is
    computed in blocks of numbers."""

    def one(value: Tensor) -> Tensor:
        flat = value.reshape(len(value), -1)
        parts = [of_sorted(flat[:, at].sort(0).values) for at in blocks(*flat.shape)]
        return torch.cat(parts).reshape(value.shape[1:])

    return tree.mapped(one, stack)


def middle(values: Tensor) -> Tensor:
    """The middle one of sorted rows, or the mean of the two middle ones."""
    n = len(values)
    return (values[(n - 1) // 2] + values[n // 2]) / 2


@dataclass(frozen=True)
class Median(OneModel):
    """Each number of the new model is the median of that number over the replies with a positive weight; how large the
    weight is does not matter."""

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        counted = reply.only(kept > 0)
        return slot | {"model": by_number(counted.upload["model"], middle)} if len(counted.ids) else slot
