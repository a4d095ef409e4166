"""Folds of clients' training samples, for parts that hold samples out to see how good a model is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedkin.core import rng


@dataclass(frozen=True)
class Folds:
    """Which fold each training sample is of, and how many samples of each class every client has in each fold."""

    of: Tensor  # (R,) for each training sample of all clients, client after client
    counts: Tensor  # (n, folds, classes)

    @staticmethod
    def made(y: np.ndarray, starts: np.ndarray, streams: np.ndarray, number: int, classes: int) -> Folds:
        """Divide each client's samples into so many folds, at random, so that all folds have about as many of a class.

        y: the targets of all training samples. starts: (n + 1,) client i has those from starts[i] to starts[i + 1].
        """
        of = np.zeros(len(y), dtype=np.int64)
        for client in range(len(streams)):
            first, last = int(starts[client]), int(starts[client + 1])
            draw = rng.uniform(streams[client : client + 1], 0, last - first)[0]
            of[first + np.lexsort((draw, y[first:last]))] = np.arange(last - first) % number
        counts = np.zeros((len(streams), number, max(1, classes)))
        if not np.issubdtype(y.dtype, np.floating):
            np.add.at(counts, (np.repeat(np.arange(len(streams)), np.diff(starts)), of, y), 1)
        return Folds(torch.from_numpy(of), torch.from_numpy(counts))

    def held(self, number: int, first: int, last: int) -> np.ndarray:
        """Return where the samples of the first folds stand, of those from `first` to `last`."""
        return first + np.flatnonzero(self.of[first:last].numpy() < number)
