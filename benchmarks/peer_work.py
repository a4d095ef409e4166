"""The work of fedkin and its peers: 20 clients, each of which goes once through its 400 samples in batches of 20."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

CLIENTS, SAMPLES, BATCH, RATE = 20, 400, 20, 0.02


def network() -> nn.Module:
    """Return the network that all train, at its start."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10))


@cache
def samples() -> list[tuple[Tensor, Tensor]]:
    """Return the noisy images of each client and their classes."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(10, 784))
    labels = rng.integers(0, 10, (CLIENTS, SAMPLES))
    noise = rng.normal(size=(CLIENTS, SAMPLES, 784))
    images = torch.from_numpy((0.1 * means[labels] + noise).astype(np.float32)).view(CLIENTS, SAMPLES, 1, 28, 28)
    return list(zip(images, torch.from_numpy(labels), strict=True))


def epoch(model: nn.Module, x: Tensor, y: Tensor) -> None:
    """Go once through a client's samples in random order, as one does without a framework."""
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    for rows in torch.randperm(len(x)).split(BATCH):
        optimiser.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimiser.step()
