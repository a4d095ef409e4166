"""Which actor has which clients."""

from __future__ import annotations

from heapq import heapify, heapreplace

import numpy as np
import torch
from torch import Tensor


def divided(steps: np.ndarray, parts: int) -> list[Tensor]:
    """Divide clients into so many parts that take about the same time; returns the clients of each, ascending.

    `steps` is what each client takes in a round. A client costs its steps and, for all else that is done for it, the
    median of the steps. The largest client comes first, and each goes to the part with the least so far.
    """
    costs = steps.astype(np.float64) + max(1.0, float(np.median(steps)))
    loads = [(0.0, part) for part in range(parts)]
    heapify(loads)
    owner = np.zeros(len(costs), dtype=np.int64)
    for client in np.argsort(-costs, kind="stable"):
        load, part = loads[0]
        owner[client] = part
        heapreplace(loads, (load + costs[client], part))
    return [torch.from_numpy(np.flatnonzero(owner == part)) for part in range(parts)]
