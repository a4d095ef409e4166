"""How much memory a network takes while it looks at samples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves


class Footprint(TorchFunctionMode):
    """Within it, `most` is the largest number of bytes alive at once among what operations gave; what was there
    `before`, and views of it, do not count."""

    def __init__(self, before: Iterable[Tensor]):
        super().__init__()
        self.before = [value.untyped_storage() for value in before]
        self.alive: WeakSet[torch.UntypedStorage] = WeakSet()
        self.most = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for value in tree_leaves(out):
            if isinstance(value, Tensor) and not self.known(value.untyped_storage()):
                self.alive.add(value.untyped_storage())
                self.most = max(self.most, sum(storage.nbytes() for storage in self.alive))
        return out

    def known(self, storage: torch.UntypedStorage) -> bool:
        return storage in self.alive or any(storage is old for old in self.before)
