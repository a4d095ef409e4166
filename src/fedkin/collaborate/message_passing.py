"""FedAMP and HeurFedAMP: clients send messages along similarity, the more alike the more."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.collaborate.mixing import Mixing, cosines, distances, gram
from fedkin.core.tree import Model
from fedkin.errors import require


@dataclass(frozen=True)
class MessagePassing(Mixing):
    """u_i = sum_j xi_ij w_j,  xi_ij = alpha A'(|w_i - w_j|^2) for j != i,  xi_ii = 1 - sum of the others,
    A'(x) = exp(-x / sigma) / sigma.

    alpha (m - 1) / sigma <= 1 makes every mixture convex; where the others' weights pass one they are scaled to it.
    """

    alpha: float = 1.0
    sigma: float = 1.0

    def __post_init__(self) -> None:
        require(self.alpha > 0, f"collaborate.alpha must be positive, not {self.alpha}.")
        require(self.sigma > 0, f"collaborate.sigma must be positive, not {self.sigma}.")

    def similarities(
        self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None
    ) -> dict[str, Tensor]:
        x = distances(gram(stacked, list(stacked)))
        others = self.alpha * torch.exp(-x / self.sigma) / self.sigma * kept.to(x.device)[None, :]
        others.fill_diagonal_(0.0)
        others = others / others.sum(1, keepdim=True).clamp(min=1.0)
        return {"model": others + torch.diag((1.0 - others.sum(1)).clamp(min=0.0))}


@dataclass(frozen=True)
class HeuristicMessagePassing(Mixing):
    """xi_ii = self_weight,  xi_ij = (1 - xi_ii) softmax over j != i of sigma cos(w_i, w_j)."""

    self_weight: float = 0.1
    sigma: float = 50.0

    def __post_init__(self) -> None:
        require(0 <= self.self_weight <= 1, f"collaborate.self_weight must be from 0 to 1, not {self.self_weight}.")
        require(self.sigma >= 0, f"collaborate.sigma cannot be negative, and is {self.sigma}.")

    def similarities(
        self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None
    ) -> dict[str, Tensor]:
        cosine = cosines(gram(stacked, list(stacked)))
        eye = torch.eye(len(cosine), dtype=torch.bool, device=cosine.device)
        here = (kept.to(cosine.device)[None, :] > 0) & ~eye  # (m, m)
        top = torch.where(here, cosine, -1.0).amax(1, keepdim=True)
        others = torch.where(here, torch.exp(self.sigma * (cosine - top)), 0.0) * kept.to(cosine.device)[None, :]
        total = others.sum(1, keepdim=True)
        others = (1 - self.self_weight) * others / total.clamp(min=torch.finfo(total.dtype).tiny)
        mine = torch.where(total > 0, total.new_tensor(self.self_weight), 1.0)  # alone a client keeps its own model
        return {"model": others + torch.diag(mine[:, 0])}
