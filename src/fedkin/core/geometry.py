"""Inner products, angles and distances between the models of clients.

Everything works on stacked models and in blocks of columns, so that no temporary is larger than what it is made of.
Results are in float64.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedkin.core.tree import Model

BLOCK = 2**21  # numbers of a temporary
NOTHING = 1e-12  # a norm below this has no direction


def blocks(m: int, width: int) -> list[slice]:
    """Ranges of columns of a matrix (m, width), each with at most `BLOCK` numbers."""
    step = max(1, BLOCK // m)
    return [slice(first, first + step) for first in range(0, width, step)]


def gram(stacked: Model, names: Sequence[str], origin: Model | None = None) -> Tensor:
    """Inner products of the clients' models, of the tensors with these names, less `origin` where it is given."""
    m = len(stacked[names[0]])
    total = torch.zeros(m, m, dtype=torch.float64, device=stacked[names[0]].device)
    for name in names:
        flat = stacked[name].reshape(m, -1)
        start = None if origin is None else origin[name].reshape(-1)
        for at in blocks(m, flat.shape[1]):
            block = flat[:, at].double() if start is None else flat[:, at].double() - start[at].double()
            total += block @ block.mT
    return (total + total.mT) / 2  # (m, m)


def cosines(products: Tensor) -> Tensor:
    """Cosines from inner products: within [-1, 1], exactly 1 with itself, 0 with a model that has no direction."""
    norms = products.diagonal().clamp(min=0).sqrt()
    found = products / (norms[:, None] * norms[None, :]).clamp(min=NOTHING**2)
    found = torch.where((norms[:, None] < NOTHING) | (norms[None, :] < NOTHING), 0.0, found)
    return found.clamp(-1, 1).fill_diagonal_(1.0)  # (m, m)


def distances(products: Tensor) -> Tensor:
    """Squared Euclidean distances from inner products."""
    squares = products.diagonal()
    return (squares[:, None] + squares[None, :] - 2 * products).clamp(min=0).fill_diagonal_(0.0)  # (m, m)
