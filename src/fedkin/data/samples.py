"""The samples of one dataset, before they are divided among clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from fedkin.data.federation import Task
from fedkin.data.preparation import Preparation
from fedkin.errors import BadInput, require

if TYPE_CHECKING:
    import pandas as pd

# of a client's rows, all labels and the number of the split: the client's training rows and its test rows
Division = Callable[[np.ndarray, np.ndarray, int], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Table:
    """A table whose rows become samples only when it is known which of them are for training."""

    frame: pd.DataFrame  # a row for each sample, of all columns but those of the target and the client
    columns: tuple[str, ...]  # all columns of the table, in order
    target: str  # the column to predict
    client: str | None = None  # the column of the clients
    # a published preparation in place of ours: of the frame and the training rows of each client
    fit: Callable[[pd.DataFrame, Mapping[str, np.ndarray]], Preparation] | None = None


@dataclass(frozen=True)
class Samples:
    """Features, labels, and what the dataset says about owners and official splits."""

    x: Tensor  # (N, ...); (N, 0) where `table` has the samples
    y: Tensor  # (N,) int64, or float32 to regress
    classes: int
    official: int | None = None  # the first `official` rows are the official training split, the rest the test split
    owner: np.ndarray | None = None  # (N,) number of the client that owns the row, if the dataset has natural clients
    owners: tuple[str, ...] = ()  # names of the natural clients
    vocabulary: int | None = None  # number of tokens, for text
    ordered: bool = False  # whether neighbouring rows overlap, as windows of one text do
    source: dict[str, object] = field(default_factory=dict)  # where the samples came from, for the record
    task: Task = "classify"
    labels: tuple[str, ...] = ()  # names of the classes; empty if they have none
    table: Table | None = None
    division: Division | None = None  # a published division in place of ours
    notes: tuple[str, ...] = ()  # sentences that the user should read

    def checked(self, name: str) -> Samples:
        """Return the samples themselves, or refuse samples that would make the loss nan in a later round.

        `name` is the dataset's name in the error sentences.
        """
        require(len(self.y) > 0, f"{name} has no samples.")
        if self.task == "classify":
            low, high = int(self.y.min()), int(self.y.max())
            require(
                low >= 0 and high < self.classes,
                f"{name} has the label {low if low < 0 else high}, but its classes are 0 to {self.classes - 1}.",
            )
        # the sum is finite only if every term is finite, and it needs no mask as large as x
        if self.x.is_floating_point() and not bool(torch.isfinite(self.x.sum())):
            rows = (~torch.isfinite(self.x.flatten(1))).any(1).nonzero().flatten().tolist()
            if rows:
                raise BadInput(
                    f"{name} has {len(rows)} rows with a feature that is not a finite number, first {rows[0]}."
                )
        return self
