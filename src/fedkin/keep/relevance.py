"""PFedRe's filter: clients whose updates point to other data than most clients' are left out (eqs. 3 to 5)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import Literal

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.keep.inversion import balanced, inverted, targets
from fedkin.parts import Keep, Reply, Sent, Slot, Task

MOST = 1e3  # a^tau is capped here (A-R3)
SAME = 1e-12  # costs that differ by less than this share are equal


def wasserstein(dummies: Tensor) -> Tensor:
    """D_il: the sum over classes and features of the 1-D Wasserstein distances between two clients' samples (4).
    Of equally many samples it is the mean difference of their sorted values, so all of it is one L1 distance."""
    m, _, samples, _ = dummies.shape  # (m, classes, samples, features)
    return apart(dummies.double().sort(2).values.reshape(m, -1)) / samples  # (m, m)


def apart(rows: Tensor, metric: Literal["l1", "l2", "cosine"] = "l1") -> Tensor:
    """The distances between rows; those of a row that is not finite are not, its distance to itself included."""
    if metric == "cosine":  # (m, d) float64 -> (m, m)
        unit = rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-12)
        found: Tensor = (1 - unit @ unit.mT).clamp(min=0)
        found.diagonal().mul_(0)  # exactly, but for what is not finite
    else:
        found = torch.cdist(rows, rows, 1 if metric == "l1" else 2, "donot_use_mm_for_euclid_dist")
    return found


def summed(distances: Tensor) -> Tensor:
    """r_i = sum_l D_il (5). Whoever cannot be compared with itself has none, and is nobody's measure."""  # (m,)
    good = distances.diagonal().isfinite()
    return distances[:, good].sum(1).masked_fill(~good, torch.nan)


def two_median(scores: Tensor) -> Tensor:
    """Who is in the majority when the scores are cut in two, each group as near to its own median as can be.

    Every cut of the sorted scores is tried. Equally good cuts: the one with the larger majority. Groups of the same
    size: the one with the lower scores. Where all scores are equal, everybody stays.
    """
    order = scores.double().argsort(stable=True)
    values = scores.double()[order]
    m = len(values)
    if m < 2 or values[0] == values[-1]:
        return torch.ones(m, dtype=torch.bool, device=scores.device)
    cuts = torch.arange(1, m, device=scores.device)
    total = torch.cat([values.new_zeros(1), (values - values[0]).cumsum(0)])

    def spent(first: Tensor, last: Tensor) -> Tensor:
        """The sum of distances to the median of values[first:last]: its upper half less its lower half."""
        half = (last - first) // 2
        return (total[last] - total[last - half]) - (total[first + half] - total[first])

    cost = spent(torch.zeros_like(cuts), cuts) + spent(cuts, torch.full_like(cuts, m))
    good = cuts[cost <= cost.min() + SAME * total[-1]]
    larger = torch.maximum(good, m - good)
    good = good[larger == larger.max()]
    cut = int(good.max())  # of equally large majorities, the one with the lower scores
    first, last = (0, cut) if 2 * cut >= m else (cut, m)
    return torch.zeros(m, dtype=torch.bool, device=scores.device).index_fill(0, order[first:last], True)


def majority(scores: Tensor, min_gap: float | None = None) -> Tensor:
    """`two_median`, but everybody stays where the two medians are less than `min_gap` deviations apart (A-R8)."""
    mask = two_median(scores)
    if min_gap is None or mask.all():
        return mask
    gap = (scores[mask].quantile(0.5) - scores[~mask].quantile(0.5)).abs()
    deviation = (scores - scores.quantile(0.5)).abs().quantile(0.5)
    return mask if gap >= min_gap * deviation else torch.ones_like(mask)


class Judging(Keep):
    """Every reply gets a score r_i, low is good; the majority of the 2-median clustering of the scores counts, the
    others do not. Remembers in how many rounds each client was judged, and judged relevant."""

    min_gap: float | None

    def __post_init__(self) -> None:
        require(self.min_gap is None or self.min_gap >= 0, f"keep.min_gap cannot be negative, and is {self.min_gap}.")

    def init(self, task: Task, gen: torch.Generator) -> Slot:
        zero = torch.zeros(task.n, dtype=torch.float64)
        return {"divergence": torch.full_like(zero, torch.nan), "judged": zero, "relevant": zero}

    def scores(self, slot: Slot, task: Task, before: Model, reply: Reply, round: int) -> Tensor:
        """r_i of every reply; nan for one that cannot be compared."""  # (m,) float64
        raise TypeError(f"{type(self).__name__} does not say how far a client is from the others")

    def __call__(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, round: int, gen: torch.Generator
    ) -> tuple[Tensor, Slot]:
        scores = self.scores(slot, task, sent.to(reply.ids)["model"], reply, round).cpu()
        good = ~scores.isnan()
        kept = torch.zeros(len(good), dtype=torch.bool)
        kept[good] = majority(scores[good], self.min_gap)
        return kept.double(), slot | {
            "divergence": slot["divergence"].index_copy(0, reply.ids, scores.masked_fill(~good, torch.inf)),
            "judged": slot["judged"].index_add(0, reply.ids, torch.ones(len(good), dtype=torch.float64)),
            "relevant": slot["relevant"].index_add(0, reply.ids, kept.double()),
        }

    def marks(self, slot: Slot) -> dict[str, Tensor]:
        return {"divergence": slot["divergence"]}


@dataclass(frozen=True)
class Relevance(Judging):
    """Each update is inverted to `samples` dummy samples a class, by `iterations` steps of Adam at `rate` from one
    common random start; D_il compares how far the dummies moved (eq. 4).

    `scale` is the paper's a, whose power tau scales the gradients of round tau = 0, 1, ...; `normalise` does what it is
    meant for without growing without bound, and makes it idle (A-R3).
    """

    samples: int = 1
    iterations: int = 50
    rate: float = 0.1
    scale: float = 1.0
    normalise: bool = True
    literal: bool = False
    min_gap: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("samples", "iterations"):
            require(getattr(self, name) >= 1, f"keep.{name} must be at least 1, not {getattr(self, name)}.")
        for name in ("rate", "scale"):
            require(getattr(self, name) > 0, f"keep.{name} must be positive, not {getattr(self, name)}.")
        require(
            not (self.normalise and (self.literal or self.scale != 1)),
            "Normalised targets have no scale, so keep.scale and keep.literal need keep.normalise=false.",
        )

    def init(self, task: Task, gen: torch.Generator) -> Slot:
        like = next(iter(task.model.values()))
        start = torch.randn(task.classes * self.samples, *task.shape, generator=gen, dtype=like.dtype)
        return super().init(task, gen) | {"start": start.to(like.device)}

    def scores(self, slot: Slot, task: Task, before: Model, reply: Reply, round: int) -> Tensor:
        assert task.logits is not None
        target = self.targets(before, reply, round)
        y = balanced(task.classes, self.samples).to(slot["start"].device)
        dummies = inverted(task.logits, before, target, slot["start"], y, self.iterations, self.rate)
        changed = dummies - slot["start"]  # z_i
        return summed(wasserstein(changed.reshape(len(changed), task.classes, self.samples, -1)))

    def targets(self, before: Model, reply: Reply, round: int) -> Model:
        """G_i of every reply (3)."""
        scale = exp(min((round - 1) * log(self.scale), log(MOST)))
        rate, steps = reply.report["rate"], reply.report["steps" if self.literal else "reach"]
        return targets(before, reply.upload["model"], rate, steps, scale, self.literal, self.normalise)


@dataclass(frozen=True)
class UpdateDistance(Judging):
    """The same rule with D_il taken between the updates themselves, |G_i - G_l|: what inversion has to beat."""

    metric: Literal["l1", "l2", "cosine"] = "l1"
    min_gap: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        known = ("l1", "l2", "cosine")
        require(self.metric in known, f"keep.metric is one of {', '.join(known)}, not '{self.metric}'.")

    def scores(self, slot: Slot, task: Task, before: Model, reply: Reply, round: int) -> Tensor:
        gradients = targets(before, reply.upload["model"], reply.report["rate"], reply.report["reach"])
        return summed(apart(tree.vector(gradients).double(), self.metric))
