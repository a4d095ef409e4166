"""Drawing distinct clients: SAMPLE_P of the cards."""

from __future__ import annotations

import torch
from torch import Tensor


def drawn(p: Tensor, k: int, gen: torch.Generator) -> Tensor:
    """k distinct clients by successive draws in proportion to p, renormalised after each; ascending.

    It is the Gumbel top-k of log p, which has the same law. With fewer than k positive entries all of them are taken,
    and the rest uniformly from the others. Ties go to the lower id.
    """
    noise = -torch.log(-torch.log(torch.rand(len(p), generator=gen, dtype=torch.float64).clamp(min=2.0**-60)))
    positive = p > 0
    key = torch.where(positive, torch.log(p.double().clamp(min=torch.finfo(torch.float64).tiny)), -1e6) + noise
    return key.argsort(descending=True, stable=True)[:k].sort().values if k < len(p) else torch.arange(len(p))
