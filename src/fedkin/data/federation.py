"""What every dataset becomes: one flat store of samples, and an index list a client.

Nothing is ever padded here; only the plan of a round's batches is (see `core/batches.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Index:
    """Ragged lists of row numbers, one a client: client i owns `rows[start[i] : start[i + 1]]`."""

    rows: Tensor  # (k,) int64
    start: Tensor  # (n + 1,) int64

    @staticmethod
    def of(lists: Iterable[Sequence[int] | np.ndarray | Tensor]) -> Index:
        parts = [torch.as_tensor(rows, dtype=torch.int64).reshape(-1) for rows in lists]
        sizes = torch.tensor([0] + [len(rows) for rows in parts], dtype=torch.int64)
        return Index(torch.cat(parts) if parts else torch.zeros(0, dtype=torch.int64), sizes.cumsum(0))

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, client: int) -> Tensor:
        return self.rows[self.start[client] : self.start[client + 1]]

    @property
    def sizes(self) -> Tensor:  # (n,) int64
        return self.start.diff()

    def lists(self) -> list[Tensor]:
        return [self.rows[a:b] for a, b in pairwise(self.start.tolist())]


@dataclass(frozen=True)
class Federation:
    """Samples and who owns them. `x` may be float features or images, or integer tokens; `y` are class numbers."""

    name: str
    x: Tensor  # (N, ...) float32, or an integer type for tokens
    y: Tensor  # (N,) int64
    classes: int
    train: Index
    test: Index
    validation: Index | None = None
    common: Tensor | None = None  # rows of the common test set, owned by no client
    server: Tensor | None = None  # rows of the server's own validation set, owned by no client
    clients: tuple[str, ...] = ()  # what each client is called
    vocabulary: int | None = None  # number of tokens, for text
    left_out: tuple[str, ...] = ()  # clients without samples, named
    irrelevant: Tensor | None = None  # (n,) bool: the truth, for the evaluation only
    source: dict[str, object] = field(default_factory=dict)  # where the samples came from, for the record

    @property
    def n(self) -> int:
        return len(self.train)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample."""
        return tuple(self.x.shape[1:])
