"""FedAMP and HeurFedAMP: a client gets more from clients whose models are more like its own."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.collaborate.mixing import Granularity, Mixing, Weights
from fedkin.core.tree import Model
from fedkin.fields import Count, NonNegative, Positive, Share


@dataclass(frozen=True)
class MessagePassing(Mixing):
    """u_i = sum_j xi_ij w_j,  xi_ij = alpha A'(|w_i - w_j|^2) for j != i,  xi_ii = 1 - sum of the others,
    A'(x) = exp(-x / sigma) / sigma.

    Every mixture is convex if alpha (m - 1) / sigma <= 1. If the weights of the others sum to more than one, they are
    scaled so that they sum to one. With `granularity` "layer" or "tensor" each component of a model has weights of its
    own, by the distances of this component alone.
    """

    alpha: Positive = 1.0  # how much of the others' models is taken
    sigma: Positive = 1.0  # squared distances of models are divided by it: small means only near ones count
    granularity: Granularity = "model"  # what has weights of its own: the whole model, a layer or a tensor
    sketch: Count | None = None  # compare models by so many numbers, a random projection; null: exactly
    neighbours: Count | None = None  # mix only so many sources, those with the largest weights, itself one; null: all

    def granular(self) -> Granularity:
        return self.granularity

    def similarities(self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None) -> Weights:
        apart = self.alike("distance", stacked)
        return Weights(
            {
                name: self.weighted(of, lambda x, mine: messages(x, mine, self.alpha, self.sigma, kept))
                for name, of in apart.items()
            }
        )


@dataclass(frozen=True)
class HeuristicMessagePassing(Mixing):
    """xi_ii = self_weight,  xi_ij = (1 - xi_ii) softmax over j != i of sigma cos(w_i, w_j).

    With `granularity` "layer" or "tensor" each component of a model has weights of its own, by the cosines of this
    component alone: the "native method" of FedMCSA's section 4.2.
    """

    self_weight: Share = 0.1  # the weight of a client's own model in its mixture
    sigma: NonNegative = 50.0  # how sharply similar models are preferred; 0: not at all
    granularity: Granularity = "model"  # what has weights of its own: the whole model, a layer or a tensor
    sketch: Count | None = None  # compare models by so many numbers, a random projection; null: exactly
    neighbours: Count | None = None  # mix only so many sources, those with the largest weights, itself one; null: all

    def granular(self) -> Granularity:
        return self.granularity

    def similarities(self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None) -> Weights:
        alike = self.alike("cosine", stacked)
        return Weights(
            {
                name: self.weighted(of, lambda cosine, mine: self.row_weights(cosine, mine, kept))
                for name, of in alike.items()
            }
        )

    def row_weights(self, cosine: Tensor, mine: Tensor, kept: Tensor) -> Tensor:
        """The weights of some clients, by their cosines with all. Without others, a client keeps its own."""  # (r, m)
        kept = kept.to(cosine.device)[None, :]
        here = (kept > 0) & ~mine  # (r, m)
        top = torch.where(here, cosine, -1.0).amax(1, keepdim=True)
        others = torch.where(here, torch.exp(self.sigma * (cosine - top)), 0.0) * kept
        total = others.sum(1, keepdim=True)
        others = (1 - self.self_weight) * others / total.clamp(min=torch.finfo(total.dtype).tiny)
        own = torch.where(total > 0, total.new_tensor(self.self_weight), 1.0)  # (r, 1)
        return torch.where(mine, own, others)


def messages(x: Tensor, mine: Tensor, alpha: float, sigma: float, kept: Tensor) -> Tensor:
    """The weights alpha A'(x) of the others for squared distances x, and of each client's own the rest."""  # (r, m)
    others = alpha * torch.exp(-x / sigma) / sigma * kept.to(x.device)[None, :]
    others = torch.where(mine, 0.0, others)
    others = others / others.sum(1, keepdim=True).clamp(min=1.0)
    return torch.where(mine, (1.0 - others.sum(1, keepdim=True)).clamp(min=0.0), others)
