"""FedMCSA's self-attention between model components (eqs. 6 and 7)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from fedkin.collaborate.message_passing import messages
from fedkin.collaborate.mixing import Granularity, Mixing, Weights, normalised
from fedkin.core.geometry import Pairs, quantile
from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.fields import Count, NonNegative, Positive

QUARTILES = 1.349  # how far apart the quartiles of a normal distribution are, in deviations
NOTHING = 1e-12  # a deviation below this is none: all clients are alike


@dataclass(frozen=True)
class ComponentAttention(Mixing):
    """w_{i,l} = sum_k psi_{i,k,l} theta_{k,l},  psi_{i,.,l} = softmax over k of sigma cos(theta_{i,l}, theta_{k,l}).

    A component l is a layer (its weight and its bias), a tensor, or the whole model (A-M3). The softmax is over the
    sources k, so that every mixture is a convex combination (A-M1), and these are the selected clients (A-M2).
    `size_weighted` multiplies psi_{i,k,l} by n_k and normalises again, as the authors' code does (A-M12).

    With `tau` the weights are those of the first line of eq. (6), the gradient step from which attention is derived:
    psi_{i,j,l} = tau / m d'(|theta_{i,l} - theta_{j,l}|^2) for j != i, and the rest for i itself. The paper leaves d
    open; here it is FedAMP's, d(x) = 1 - exp(-x / sigma). As there, weights of the others that sum to more than one are
    scaled so that they sum to one.

    With `neighbours` the softmax is still over all sources; the weights of those that are not mixed are what is
    recorded as `dropped_weight` (`Mixing` says how far that can move a mixture).

    With `standardise` (ours) the softmax is of sigma z, z = (cos - median) / deviation over all pairs of different
    clients in the round; the deviation is the distance of the quartiles divided by that of a normal distribution of
    deviation 1. A client counts for itself as its most similar client does. Cosines of models with a common start are
    all near 1, and those of updates (`similarity="update"`, ours) near 0, so that one sigma would mean all or nothing.
    """

    sigma: NonNegative = 50.0  # how sharply attention prefers similar components; 0: the mean; with tau: the width of d
    granularity: Granularity = "layer"  # what a component is: a layer, a tensor or the whole model
    size_weighted: bool = False  # whether attention is multiplied by the clients' numbers of samples
    standardise: bool = False  # whether cosines are measured in deviations of all pairs' cosines; sigma is then about 1
    similarity: Literal["model", "update"] = (
        "model"  # whether models are compared, or how they have moved since the start
    )
    tau: Positive | None = None  # the step of eq. (6), first line, whose weights replace attention; null: attention
    sketch: Count | None = None  # compare components by so many numbers, a random projection; null: exactly
    neighbours: Count | None = None  # mix only so many sources, those with the largest weights, itself one; null: all

    def check(self) -> None:
        plain = self.sigma > 0 and not self.size_weighted
        require(self.tau is None or plain, "With tau, sigma must be positive and size_weighted false.")
        ours = self.standardise or self.similarity == "update"
        require(
            self.tau is None or not ours, "With tau, distances of models count; set standardise and similarity back."
        )

    def granular(self) -> Granularity:
        return self.granularity

    def similarities(self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None) -> Weights:
        require(not self.size_weighted or sizes is not None, "Size-weighted attention needs the clients' sizes.")
        if self.tau is not None:
            alpha, sigma = self.tau / len(kept), self.sigma
            apart = self.alike("distance", stacked)
            return Weights(
                {
                    name: self.weighted(of, lambda x, mine: messages(x, mine, alpha, sigma, kept))  # (6)
                    for name, of in apart.items()
                }
            )

        start = origin if self.similarity == "update" else None
        alike = self.alike("cosine", stacked, start)
        scales = {name: standard(of) for name, of in alike.items()} if self.standardise else {}

        def weigh(name: str, cosine: Tensor, mine: Tensor) -> Tensor:
            top, near = scales[name].measured(cosine, mine) if self.standardise else (1.0, cosine)
            attention = torch.exp(self.sigma * (near - top))  # (7); less the largest of the row
            if self.size_weighted and sizes is not None:
                attention = attention * sizes.double().to(attention.device)[None, :]
            return normalised(attention, mine, kept)

        return Weights({name: self.weighted(of, partial(weigh, name)) for name, of in alike.items()})


class Scale(NamedTuple):
    """The median and the deviation of all cosines of different clients."""

    middle: float
    deviation: float

    def measured(self, cosine: Tensor, mine: Tensor) -> tuple[Tensor, Tensor]:
        """The largest number of each row, and the cosines in deviations; a client is as near to itself as to its most
        similar client."""
        z = (cosine - self.middle) / max(self.deviation, NOTHING)
        top = torch.where(mine, -torch.inf, z).amax(1, keepdim=True)
        top = torch.where(top.isfinite(), top, 0.0)  # nobody else
        return top, torch.where(mine, top, z)


def standard(of: Pairs) -> Scale:
    """The scale of all pairs of different clients. Those of a client with itself are the largest, and are left out."""
    count = of.m * of.m
    share = max(0, count - of.m - 1) / max(1, count - 1)
    low, middle, high = (quantile(of, level * share) for level in (0.25, 0.5, 0.75))
    return Scale(middle, (high - low) / QUARTILES)
