"""The clients' private slots: stacked models, one row a client, in memory or, beyond a budget, in mapped files.

A mapped file is scratch: it changes with every round, so it would run ahead of a checkpoint. A checkpoint therefore
copies the slots to a file of its own (a version), and resuming copies that version back to fresh scratch.
"""

from __future__ import annotations

import tempfile
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Message

BUDGET = 4 * 2**30  # bytes held in memory before slots are mapped


class Slots:
    """`n` clients' private models; all start from the same ones."""

    def __init__(self, first: Message, n: int, budget: int = BUDGET, scratch: Path | None = None):
        self.first, self.n, self.scratch = first, n, scratch
        self.bytes = tree.size(first.values())[1] * n
        self.mapped = self.bytes > budget
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @cached_property
    def values(self) -> Message:
        """Stacked, a row a client; room is taken when it is first asked for."""
        if self.mapped:
            self._folder = tempfile.TemporaryDirectory(prefix="slots-", dir=self.scratch)
        return {
            slot: {name: self._filled(f"{slot}.{name}", value) for name, value in model.items()}
            for slot, model in self.first.items()
        }

    @property
    def folder(self) -> Path | None:
        """Where mapped slots lie."""
        return None if self._folder is None else Path(self._folder.name)

    def _filled(self, name: str, value: Tensor) -> Tensor:
        shape = (self.n, *value.shape)
        if self._folder is None:
            return value.expand(shape).clone()
        path = str(Path(self._folder.name) / name)
        room = torch.from_file(path, shared=True, size=self.n * value.numel(), dtype=value.dtype).reshape(shape)
        for start in range(0, self.n, 1024):
            room[start : start + 1024] = value
        return room

    def read(self, ids: Tensor) -> Message:
        """A copy of these clients' rows."""
        return tree.each(lambda model: tree.mapped(lambda value: value.index_select(0, ids), model), self.values)

    def write(self, ids: Tensor, rows: Message) -> None:
        for slot, model in self.values.items():
            for name, value in model.items():
                value.index_copy_(0, ids, rows[slot][name].to(value.dtype))

    def restore(self, saved: Message) -> None:
        for slot, model in self.values.items():
            for name, value in model.items():
                value.copy_(saved[slot][name])

    def close(self) -> None:
        self.__dict__.pop("values", None)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
