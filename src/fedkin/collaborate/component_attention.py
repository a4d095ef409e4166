"""FedMCSA's self-attention between model components (eqs. 6 and 7)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.collaborate.mixing import Granularity, Mixing, components, cosines, gram, normalised
from fedkin.core.tree import Model
from fedkin.errors import require


@dataclass(frozen=True)
class ComponentAttention(Mixing):
    """w_{i,l} = sum_k psi_{i,k,l} theta_{k,l},  psi_{i,.,l} = softmax over k of sigma cos(theta_{i,l}, theta_{k,l}).

    A component is a layer (weight and bias together), a tensor, or the whole model (A-M3). The softmax is over the
    row, so that every mixture is a convex combination (A-M1), and over the selected clients (A-M2). `size_weighted`
    multiplies it by n_k and renormalises, as the authors' code does (A-M12).
    """

    sigma: float = 50.0
    granularity: Granularity = "layer"
    size_weighted: bool = False

    def __post_init__(self) -> None:
        require(self.sigma >= 0, f"collaborate.sigma cannot be negative, and is {self.sigma}.")
        known = ("layer", "tensor", "model")
        require(self.granularity in known, f"collaborate.granularity is one of {known}, not '{self.granularity}'.")

    def granular(self) -> Granularity:
        return self.granularity

    def similarities(
        self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None
    ) -> dict[str, Tensor]:
        require(not self.size_weighted or sizes is not None, "Size-weighted attention needs the clients' sizes.")
        found = {}
        for component, names in components(stacked, self.granularity).items():
            cosine = cosines(gram(stacked, names))
            attention = torch.exp(self.sigma * (cosine - 1.0))  # (7); the row's maximum is cos = 1, with itself
            if self.size_weighted and sizes is not None:
                attention = attention * sizes.double().to(attention.device)[None, :]
            found[component] = normalised(attention, kept)
        return found
