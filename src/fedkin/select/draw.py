"""Drawing distinct clients in proportion to given numbers."""

from __future__ import annotations

import torch
from torch import Tensor


def drawn(p: Tensor, k: int, gen: torch.Generator) -> Tensor:
    """The ids of k distinct clients, ascending. They are drawn one after another in proportion to p, which is
    renormalised after each draw.

    The k largest of log p + Gumbel noise have the same distribution as such draws. If fewer than k entries of p are
    positive, all of these are taken, and the rest is drawn uniformly from the others. Ties go to the lower id.
    """
    noise = -torch.log(-torch.log(torch.rand(len(p), generator=gen, dtype=torch.float64).clamp(min=2.0**-60)))
    positive = p > 0
    key = torch.where(positive, torch.log(p.double().clamp(min=torch.finfo(torch.float64).tiny)), -1e6) + noise
    return key.argsort(descending=True, stable=True)[:k].sort().values if k < len(p) else torch.arange(len(p))
