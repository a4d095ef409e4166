"""Stores the clients' private slots: in memory if they are small, else as rows that lie in files (`rows.py`)."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.rows import Rows, Sealed
from fedkin.core.tree import Message, Model

WHOLE = 2**28  # bytes of slots up to which all clients' are held in memory and a checkpoint has them all
BUDGET = 500_000_000  # bytes of slots that are held in memory unless somebody says otherwise


class Slots:
    """The private models of `n` clients, all in memory. Every client starts with the models `first`."""

    folder: Path | None = None  # of files; there are none

    def __init__(self, first: Message, n: int):
        self.first, self.n = first, n

    @cached_property
    def values(self) -> Message:
        """The stacked models, a row for each client. Memory is allocated at the first use."""
        return tree.each(
            lambda model: tree.mapped(lambda value: value.expand(self.n, *value.shape).clone(), model), self.first
        )

    def read(self, ids: Tensor) -> Message:
        """A copy of these clients' rows."""
        return tree.each(lambda model: tree.mapped(lambda value: value.index_select(0, ids), model), self.values)

    def read_one(self, ids: Tensor, slot: str) -> Model:
        """A copy of these clients' rows of one slot."""
        return tree.mapped(lambda value: value.index_select(0, ids), self.values[slot])

    def write(self, ids: Tensor, rows: Message) -> None:
        """Replace these clients' rows."""
        for slot, model in self.values.items():
            for name, value in model.items():
                value.index_copy_(0, ids, rows[slot][name].to(value.dtype))

    def private(self) -> Message:
        """What a checkpoint stores: the models of all clients, stacked."""
        return self.values

    def restore(self, saved: Message | Sealed) -> None:
        """Replace the rows of all clients by those of a checkpoint, stacked or in files."""
        if isinstance(saved, Sealed):
            rows = Rows(self.first, self.n, 0)
            rows.restore(saved)
            for ids in torch.arange(self.n).split(1024):
                self.write(ids, rows.read(ids))
            rows.close()
            return
        for slot, model in self.values.items():
            for name, value in model.items():
                value.copy_(saved[slot][name])

    def close(self) -> None:
        """Free the memory."""
        self.__dict__.pop("values", None)


def slots_for(first: Message, n: int, budget: int = BUDGET, scratch: Path | None = None) -> Slots | Rows:
    """Return the slots of n clients: all in memory where they take no more than the budget and are small anyway."""
    size = tree.size(first.values())[1] * n
    return Slots(first, n) if size <= min(budget, WHOLE) else Rows(first, n, budget, scratch)
