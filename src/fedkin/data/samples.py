"""Samples as a source yields them, before they are divided among clients."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from fedkin.errors import BadInput, require


@dataclass(frozen=True)
class Samples:
    x: Tensor  # (N, ...)
    y: Tensor  # (N,) int64
    classes: int
    official: int | None = None  # the first so many rows are the official training split, the rest the test split
    owner: np.ndarray | None = None  # (N,) number of the client that owns the row, where clients are natural
    owners: tuple[str, ...] = ()  # what the natural clients are called
    vocabulary: int | None = None
    ordered: bool = False  # neighbouring rows overlap, as windows of one text do
    source: dict[str, object] = field(default_factory=dict)

    def checked(self, name: str) -> Samples:
        """Refuse what would otherwise surface as a nan loss many rounds later."""
        require(len(self.y) > 0, f"{name} has no samples.")
        low, high = int(self.y.min()), int(self.y.max())
        require(
            low >= 0 and high < self.classes,
            f"{name} has the label {low if low < 0 else high}, but its classes are 0 to {self.classes - 1}.",
        )
        # a sum is finite only if every term is, and takes one pass without a mask as large as x
        if self.x.is_floating_point() and not bool(torch.isfinite(self.x.sum())):
            rows = (~torch.isfinite(self.x.flatten(1))).any(1).nonzero().flatten().tolist()
            if rows:
                raise BadInput(
                    f"{name} has {len(rows)} rows with a feature that is not a finite number, first {rows[0]}."
                )
        return self
