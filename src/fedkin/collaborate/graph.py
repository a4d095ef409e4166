"""pFedGraph's collaboration graph: a client gets more from clients whose models have moved in the same direction."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.collaborate.mixing import Mixing, Weights, normalised
from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.fields import Count, Positive, Share


@dataclass(frozen=True)
class CollaborationGraph(Mixing):
    """u_i = sum_j w_ij theta_j,  w_i = argmin over the simplex of sum_j w_ij d_ij + lam |w_i - p|^2.

    d_ij = -cos(theta_i - theta^0, theta_j - theta^0), and p_j is the share of client j in the samples of the selected.
    The minimum is the projection of p - d_i / (2 lam) onto the simplex, so it needs no solver. A cosine above `same`
    counts as 1; with same=1 none does. The authors' code has same=0.9, the paper does not.
    """

    lam: Positive = 0.8  # how strongly weights are pulled towards the shares of samples; large: the mean by size
    same: Share = 1.0  # a cosine above this counts as 1
    sketch: Count | None = None  # compare models by so many numbers, a random projection; null: exactly
    neighbours: Count | None = None  # mix only so many sources, those with the largest weights, itself one; null: all

    def similarities(self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None) -> Weights:
        require(origin is not None, "Comparing updates needs the model they start from.")
        share = torch.ones_like(kept) if sizes is None else sizes.double().to(kept.device)
        p = share / share.sum()

        def weigh(cosine: Tensor, mine: Tensor) -> Tensor:
            d = -torch.where(cosine > self.same, 1.0, cosine)
            return normalised(onto_simplex(p.to(d.device) - d / (2 * self.lam)), mine, kept)

        return Weights({"model": self.weighted(self.alike("cosine", stacked, origin)["model"], weigh)})


def onto_simplex(v: Tensor) -> Tensor:
    """The nearest point of the simplex to each row: max(v - t, 0), with t such that it sums to one."""  # (r, m)
    falling = v.sort(1, descending=True).values
    places = torch.arange(1, v.shape[1] + 1, dtype=v.dtype, device=v.device)
    level = (falling.cumsum(1) - 1) / places  # t, if the first so many stay above zero
    count = (falling > level).sum(1, keepdim=True)
    return (v - level.gather(1, count - 1)).clamp(min=0)
