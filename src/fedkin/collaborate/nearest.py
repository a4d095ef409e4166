"""The largest weights of mixtures, for rounds with so many clients that all weights would not fit into memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag


@dataclass(frozen=True)
class Nearest:
    """The k sources with the largest weights in each client's mixture; the first is the client itself."""

    at: Tensor  # (m, k) the places of these sources among all
    weights: Tensor  # (m, k) rows sum to one
    dropped: Tensor  # (m,) what the weights of the other sources were together

    def __getitem__(self, rows: Tensor) -> Nearest:
        """Those of some clients."""
        return Nearest(self.at[rows], self.weights[rows], self.dropped[rows])

    @staticmethod
    def joined(parts: Iterable[tuple[slice, Nearest]], like: Tensor, k: int) -> Nearest:
        """Those of as many clients as `like` has rows, which come in parts.

        All memory is taken before the first part is made: small pieces kept between large temporaries would hold the
        memory of these as well.
        """
        m = len(like)
        at, weights = like.new_empty(m, k, dtype=torch.int64), like.new_empty(m, k)
        found = Nearest(at, weights, like.new_empty(m))
        for rows, part in parts:
            found.at[rows], found.weights[rows], found.dropped[rows] = part.at, part.weights, part.dropped
        return found

    def whole(self, sources: int) -> Tensor:
        """The weights of all sources, most of them zero."""  # (m, s)
        return self.weights.new_zeros(len(self.at), sources).scatter_(1, self.at, self.weights)

    def blended(self, flat: Tensor) -> Tensor:
        """The mixtures of these rows."""  # (s, d) -> (m, d)
        return embedding_bag(self.at, flat, mode="sum", per_sample_weights=self.weights.to(flat.dtype))


def nearest(weights: Tensor, mine: Tensor, k: int) -> Nearest:
    """The k largest weights of each row, the one of the client's own place always among them, divided by their sum.

    Which ones of several equal weights are taken is left to the sorting. Where the sum is zero, the client's own weight
    becomes 1.
    """  # (r, m), (r, m)
    at = torch.where(mine, torch.inf, weights).topk(k, dim=1).indices
    found = weights.gather(1, at)
    total = found.sum(1, keepdim=True)
    alone = torch.zeros_like(found)
    alone[:, 0] = 1.0
    shares = torch.where(total > 0, found / total.clamp(min=torch.finfo(total.dtype).tiny), alone)
    return Nearest(at, shares, (weights.sum(1) - total[:, 0]).clamp(min=0))
