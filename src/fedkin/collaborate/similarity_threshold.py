"""FedACS's similarity-thresholded client attention (eqs. 3 and 4). Not the industrial-IoT method of the same name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import torch
from torch import Tensor

from fedkin.collaborate.mixing import Mixing, Weights, normalised
from fedkin.contract import Gives
from fedkin.core import tree
from fedkin.core.geometry import Pairs, quantile
from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.fields import Count, NonNegative, Rule, Share
from fedkin.messages import Reply, Sent, Slot, Task

Quantile = Annotated[
    float, Rule(lambda v: 0 <= v <= 1, "{field} is a quantile from 0 to 1, or null, not {value}.", "from 0 to 1")
]


@dataclass(frozen=True)
class SimilarityThreshold(Mixing):
    """u_i = sum_j a_ij w_j,  a_ij = s_ij [s_ij > delta and s_ij > 0, or i = j], normalised; s = cosine of whole models.

    delta is the p-quantile, interpolated linearly, of all entries of the similarity matrix, its diagonal included;
    p=None is delta = -infinity, so that all clients with a positive cosine count (A-A1). A client always counts for
    itself (A-A2). The sources j are the selected clients or, with `pool="all"`, all clients seen so far, each by its
    last upload (A-A7). `similarity="update"` compares w - theta^0 instead of w (A-A8, not in the paper). With alpha
    below 1, u_i <- (1 - alpha) w_i + alpha u_i (A-A5). In round k alpha is divided by 1 + alpha_gamma (k - 1), as the
    second part of the paper's theorem wants it: steps whose sum is infinite and whose squares' sum is not.

    With `neighbours` delta is the same quantile of all entries, found in one more pass over them (`geometry.quantile`);
    of the clients above delta those with the largest similarities are mixed. With `sketch` all similarities are those
    of the sketches, delta's as well.
    """

    p: Quantile | None = (
        0.9  # the quantile of all similarities that a neighbour must exceed; null: none, every one counts
    )
    pool: Literal["selected", "all"] = (
        "selected"  # whose models are mixed: the selected clients', or all clients' last ones
    )
    similarity: Literal["model", "update"] = (
        "model"  # whether models are compared, or how they have moved since the start
    )
    alpha: Share = 1.0  # how much of the mixture a client takes; its own model is the rest
    alpha_gamma: NonNegative = 0.0  # alpha of round k is divided by 1 + alpha_gamma (k - 1)
    sketch: Count | None = None  # compare models by so many numbers, a random projection; null: exactly
    neighbours: Count | None = None  # mix only so many sources, those with the largest weights, itself one; null: all

    @property
    def gives(self) -> Gives:
        return replace(super().gives, remembered=int(self.pool == "all"))

    def similarities(self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None) -> Weights:
        require(self.similarity == "model" or origin is not None, "Comparing updates needs the model they start from.")
        start = origin if self.similarity == "update" else None
        of = self.alike("cosine", stacked, start)["model"]
        delta = self.threshold(of)  # (3)

        def weigh(s: Tensor, mine: Tensor) -> Tensor:
            attention = normalised(torch.where(self.mask(s, mine, delta), s, 0.0), mine, kept)  # (4)
            return (1 - self.alpha) * mine.to(attention.dtype) + self.alpha * attention

        return Weights({"model": self.weighted(of, weigh)}, {"threshold": delta} if np.isfinite(delta) else {})

    def threshold(self, of: Pairs) -> float:
        """delta: the p-quantile of all similarities."""
        return float("-inf") if self.p is None else quantile(of, self.p)

    def mask(self, s: Tensor, mine: Tensor, delta: float) -> Tensor:
        """Which client counts for which: those with a positive similarity above delta, and each for itself."""
        return ((s > delta) & (s > 0)) | mine  # (r, m)

    def cautions(self, task: Task, share: float) -> list[str]:
        """Say so where a client has less than one neighbour on average, and which p would give each one or two."""
        m, said = self.compared(task, share), super().cautions(task, share)
        if self.p is None or m < 2:
            return said
        pairs = pairs_above(self.p, m)
        if 2 * pairs >= m:
            return said
        advice = " or ".join(f"p={level_for(m, k)} for about {word}" for k, word in ((1, "one neighbour"), (2, "two")))
        advice = advice if m > 2 else "p=null for all"
        if not pairs:
            alone = f"With p={self.p} and {m} clients no two ever exchange anything: this is training alone"
            return [*said, f"{alone}; set collaborate.{advice} each."]
        own = 1 - pairs / m  # of two clients in a pair each keeps half, the others keep all
        return [
            *said,
            f"With p={self.p} and {m} clients a client keeps about {100 * own:.1f} % of its own model, as only "
            f"{pairs} pair{'s' if pairs > 1 else ''} of clients exchange{'' if pairs > 1 else 's'} anything; set "
            f"collaborate.{advice} each.",
        ]

    def compared(self, task: Task, share: float) -> int:
        return task.n if self.pool == "all" else super().compared(task, share)

    def init(self, task: Task) -> Slot:
        slot = super().init(task) | ({"rounds": torch.zeros((), dtype=torch.int64)} if self.alpha_gamma else {})
        if self.pool == "selected":
            return slot
        cache = tree.mapped(lambda value: value.new_zeros(0, *value.shape), task.model)  # a row for each client seen
        return slot | {"cache": cache, "seen": torch.zeros(task.n, dtype=torch.bool)}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        if not self.alpha_gamma:
            return super().send(slot, task, ids, current)
        alpha = self.alpha / (1 + self.alpha_gamma * int(slot["rounds"]))
        sent, slot = replace(self, alpha=alpha, alpha_gamma=0.0).send(slot, task, ids, current)
        return sent, slot | {"rounds": slot["rounds"] + 1}

    def sources(self, slot: Slot, ids: Tensor, current: Model) -> tuple[Tensor, Model]:
        """The selected clients with the models that they hold now; with `pool="all"` also every other client seen so
        far, with its last upload."""
        if self.pool == "selected":
            return super().sources(slot, ids, current)
        return joined(*cached(slot), ids, current)

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        slot = super().receive(slot, task, sent, reply, kept)
        if self.pool == "selected":
            return slot
        cache = joined(*cached(slot), reply.ids, reply.upload["model"])[1]
        return slot | {"cache": cache, "seen": slot["seen"].index_fill(0, reply.ids, True)}


def cached(slot: Slot) -> tuple[Tensor, Model]:
    """The clients seen so far, ascending, and the last upload of each."""
    seen = slot["seen"].nonzero().reshape(-1)
    cache: Model = slot["cache"]
    whole = len(next(iter(cache.values()))) > len(seen)  # an older version had a row for every client
    return seen, tree.rows(cache, seen) if whole else cache


def joined(ids: Tensor, models: Model, new_ids: Tensor, new_models: Model) -> tuple[Tensor, Model]:
    """The clients of both lists, ascending, and their models; who is in both has the new one."""
    both = torch.cat([ids, new_ids]).unique()
    rows = {name: value.new_empty(len(both), *value.shape[1:]) for name, value in models.items()}
    for some, values in ((ids, models), (new_ids, new_models)):
        at = torch.searchsorted(both, some)
        rows = {name: value.index_copy_(0, at, values[name]) for name, value in rows.items()}
    return both, rows


def pairs_above(p: float, m: int) -> int:
    """How many pairs of m clients have a similarity above the p-quantile of the whole matrix.

    The diagonal, m ones, is at the top of the m * m sorted entries, and every other similarity is there twice.
    """
    above = m * m - 1 - int(p * (m * m - 1) + 1e-9)  # strictly above the interpolated quantile
    return max(0, (above - m) // 2)


def level_for(m: int, neighbours: int) -> str:
    """The p with which each of m clients has about so many neighbours, in two digits; 'null' where all must count."""
    p = int(100 * (1 - (1 + neighbours) / m)) / 100
    return f"{p:g}" if p > 0 else "null"
