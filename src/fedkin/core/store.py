"""Stores the clients' private slots, in memory or, if they are larger than a budget, in memory-mapped files.

Mapped files are temporary. They change in every round, so they are soon newer than the last checkpoint. A checkpoint
therefore copies the slots to its own file, and a resumed run copies that file into new mapped files.
"""

from __future__ import annotations

import tempfile
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Message

BUDGET = 4 * 2**30  # the most bytes of slots that are held in memory


class Slots:
    """The private models of `n` clients. Every client starts with the models `first`.

    `scratch` is the folder for mapped files; None is the system's temporary folder.
    """

    def __init__(self, first: Message, n: int, budget: int = BUDGET, scratch: Path | None = None):
        self.first, self.n, self.scratch = first, n, scratch
        self.bytes = tree.size(first.values())[1] * n
        self.mapped = self.bytes > budget
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @cached_property
    def values(self) -> Message:
        """The stacked models, a row for each client. Memory or files are allocated at the first use."""
        if self.mapped:
            self._folder = tempfile.TemporaryDirectory(prefix="slots-", dir=self.scratch)
        return {
            slot: {name: self._filled(f"{slot}.{name}", value) for name, value in model.items()}
            for slot, model in self.first.items()
        }

    @property
    def folder(self) -> Path | None:
        """The folder of the mapped files, or None if there are none."""
        return None if self._folder is None else Path(self._folder.name)

    def _filled(self, name: str, value: Tensor) -> Tensor:
        """A tensor with `value` in every client's row, in memory or mapped to a file called `name`."""
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
        """Replace these clients' rows."""
        for slot, model in self.values.items():
            for name, value in model.items():
                value.index_copy_(0, ids, rows[slot][name].to(value.dtype))

    def restore(self, saved: Message) -> None:
        """Replace the rows of all clients by those of a checkpoint."""
        for slot, model in self.values.items():
            for name, value in model.items():
                value.copy_(saved[slot][name])

    def close(self) -> None:
        """Free the memory and delete the mapped files."""
        self.__dict__.pop("values", None)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
