"""How many actors there are, and which of them has which clients."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heapreplace

import numpy as np
import torch
from torch import Tensor

from fedkin.errors import require


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


def check_actors(actors: int | None, n: int) -> None:
    """Refuse more actors than there are clients."""
    require((actors or 1) <= n, f"{actors} actors are more than the {n} clients; ask for fewer.")


def shares(there: Mapping[str, float], actors: int | None, n: int, device: str) -> tuple[int, float]:
    """Return how many actors there are to be for n clients, and which share of a GPU each gets.

    `there` is what the cluster has. None for `actors` means one a core, or one a GPU.
    """
    cores, gpus = int(there.get("CPU", 0)), there.get("GPU", 0.0) if device != "cpu" else 0.0
    require(device == "cpu" or gpus, "The Ray cluster has no GPU; use --device cpu.")
    number = actors or max(1, min(n, int(gpus) or cores))
    require(number <= cores, f"Each actor takes a core, and there are {cores} for {number} actors; ask for fewer.")
    return number, min(1.0, gpus / number)
