"""FedAMP and HeurFedAMP: a client gets more from clients whose models are more like its own."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.collaborate.mixing import Mixing, Weights
from fedkin.core.geometry import cosines, distances, gram
from fedkin.core.tree import Model
from fedkin.fields import NonNegative, Positive, Share


@dataclass(frozen=True)
class MessagePassing(Mixing):
    """u_i = sum_j xi_ij w_j,  xi_ij = alpha A'(|w_i - w_j|^2) for j != i,  xi_ii = 1 - sum of the others,
    A'(x) = exp(-x / sigma) / sigma.

    Every mixture is convex if alpha (m - 1) / sigma <= 1. If the weights of the others sum to more than one, they are
    scaled so that they sum to one.
    """

    alpha: Positive = 1.0  # how much of the others' models is taken
    sigma: Positive = 1.0  # squared distances of models are divided by it: small means only near ones count

    def similarities(self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None) -> Weights:
        x = distances(gram(stacked, list(stacked)))
        others = self.alpha * torch.exp(-x / self.sigma) / self.sigma * kept.to(x.device)[None, :]
        others.fill_diagonal_(0.0)
        others = others / others.sum(1, keepdim=True).clamp(min=1.0)
        return Weights({"model": others + torch.diag((1.0 - others.sum(1)).clamp(min=0.0))})


@dataclass(frozen=True)
class HeuristicMessagePassing(Mixing):
    """xi_ii = self_weight,  xi_ij = (1 - xi_ii) softmax over j != i of sigma cos(w_i, w_j)."""

    self_weight: Share = 0.1  # the weight of a client's own model in its mixture
    sigma: NonNegative = 50.0  # how sharply similar models are preferred; 0: not at all

    def similarities(self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None) -> Weights:
        cosine = cosines(gram(stacked, list(stacked)))
        eye = torch.eye(len(cosine), dtype=torch.bool, device=cosine.device)
        here = (kept.to(cosine.device)[None, :] > 0) & ~eye  # (m, m)
        top = torch.where(here, cosine, -1.0).amax(1, keepdim=True)
        others = torch.where(here, torch.exp(self.sigma * (cosine - top)), 0.0) * kept.to(cosine.device)[None, :]
        total = others.sum(1, keepdim=True)
        others = (1 - self.self_weight) * others / total.clamp(min=torch.finfo(total.dtype).tiny)
        mine = torch.where(
            total > 0, total.new_tensor(self.self_weight), 1.0
        )  # without others, a client keeps its own model
        return Weights({"model": others + torch.diag(mine[:, 0])})
