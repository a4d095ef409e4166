"""Measures how much memory a network needs for a forward pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves


class Footprint(TorchFunctionMode):
    """A context in which `most` becomes the largest number of bytes that results of operations took at one time.

    The tensors `before` and their views do not count.
    """

    def __init__(self, before: Iterable[Tensor]):
        super().__init__()
        self.before = [value.untyped_storage() for value in before]
        self.alive: WeakSet[torch.UntypedStorage] = WeakSet()
        self.most = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for value in tree_leaves(out):
            if isinstance(value, Tensor) and self._is_new(value.untyped_storage()):
                self.alive.add(value.untyped_storage())
                self.most = max(self.most, sum(storage.nbytes() for storage in self.alive))
        return out

    def _is_new(self, storage: torch.UntypedStorage) -> bool:
        """Whether the storage is not counted yet and did not exist before."""
        return storage not in self.alive and all(storage is not old for old in self.before)
