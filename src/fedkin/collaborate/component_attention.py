"""FedMCSA's self-attention between model components (eqs. 6 and 7)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.collaborate.mixing import Granularity, Mixing, Weights, components, normalised
from fedkin.core.geometry import cosines, gram
from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.fields import NonNegative


@dataclass(frozen=True)
class ComponentAttention(Mixing):
    """w_{i,l} = sum_k psi_{i,k,l} theta_{k,l},  psi_{i,.,l} = softmax over k of sigma cos(theta_{i,l}, theta_{k,l}).

    A component l is a layer (its weight and its bias), a tensor, or the whole model (A-M3). The softmax is over the
    sources k, so that every mixture is a convex combination (A-M1), and these are the selected clients (A-M2).
    `size_weighted` multiplies psi_{i,k,l} by n_k and normalises again, as the authors' code does (A-M12).
    """

    sigma: NonNegative = 50.0  # how sharply attention prefers similar components; 0: the mean
    granularity: Granularity = "layer"  # what a component is: a layer, a tensor or the whole model
    size_weighted: bool = False  # whether attention is multiplied by the clients' numbers of samples

    def granular(self) -> Granularity:
        return self.granularity

    def similarities(self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None) -> Weights:
        require(not self.size_weighted or sizes is not None, "Size-weighted attention needs the clients' sizes.")
        found: dict[str, Tensor] = {}
        for component, names in components(stacked, self.granularity).items():
            cosine = cosines(gram(stacked, names))
            attention = torch.exp(self.sigma * (cosine - 1.0))  # (7); less the largest of the row, cos = 1
            if self.size_weighted and sizes is not None:
                attention = attention * sizes.double().to(attention.device)[None, :]
            found[component] = normalised(attention, kept)
        return Weights(found)
