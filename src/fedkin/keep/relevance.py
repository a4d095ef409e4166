"""PFedRe's filter: updates that point to other data than most updates do not count (eqs. 3 to 5)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from fedkin.contract import Needs
from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.fields import Count, NonNegative, Positive, Rule
from fedkin.keep.inversion import balanced, inverted, targets
from fedkin.keep.majority import Majority
from fedkin.messages import Reply, Slot, Task

MOST = 1e3  # a^tau is capped here (A-R3)

Metric = Annotated[
    Literal["l1", "l2", "cosine"],
    Rule(lambda v: v in ("l1", "l2", "cosine"), "{field} is one of l1, l2, cosine, not '{value}'."),
]


def wasserstein(dummies: Tensor) -> Tensor:
    """D_il: the sum over classes and features of the 1-D Wasserstein distances between the samples of two clients (4).

    The 1-D distance of equally many samples is the mean difference of their sorted values, so D_il is one L1 distance.
    """
    m, _, samples, _ = dummies.shape  # (m, classes, samples, features)
    return apart(dummies.double().sort(2).values.reshape(m, -1)) / samples  # (m, m)


def apart(rows: Tensor, metric: Metric = "l1") -> Tensor:
    """The distances between rows. The distances of a row that is not finite, also to itself, are not finite."""
    if metric == "cosine":  # (m, d) float64 -> (m, m)
        unit = rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-12)
        found: Tensor = (1 - unit @ unit.mT).clamp(min=0)
        found.diagonal().mul_(0)  # zero, but nan stays nan
    else:
        found = torch.cdist(rows, rows, 1 if metric == "l1" else 2, "donot_use_mm_for_euclid_dist")
    return found


def summed(distances: Tensor) -> Tensor:
    """r_i = sum_l D_il (5). A client whose distance to itself is not finite gets no score (nan) and does not enter the
    scores of other clients."""  # (m,)
    good = distances.diagonal().isfinite()
    return distances[:, good].sum(1).masked_fill(~good, torch.nan)


@dataclass(frozen=True)
class Relevance(Majority):
    """Each update is inverted to `samples` dummy samples of each class, by `iterations` steps of Adam at `rate`, which
    start from the same random samples for all clients. D_il compares how the dummies have changed (4).

    `scale` is the paper's a: the gradients of round tau = 0, 1, ... are multiplied by a^tau. `normalise` divides the
    gradients by their median norm instead, which keeps them large enough without growing from round to round (A-R3).
    `literal` takes eq. (3) as it is printed.

    With `labels="learned"` the dummies' labels are fitted too, as the text after eq. (3) has it and DLG does: a label
    is the softmax of numbers that start as one for the dummy's class and zero for the others. (4) still compares
    dummies of the class with which they started, so that every class has as many.
    """

    copies = 5  # targets, and what is inverted

    samples: Count = 1  # dummy samples of each class
    iterations: Count = 50  # steps by which dummies are fitted to an update
    rate: Positive = 0.1  # the rate of these steps
    scale: Positive = 1.0  # the paper's a: gradients of round tau = 0, 1, ... are multiplied by a^tau
    normalise: bool = True  # divides gradients by their median norm instead
    literal: bool = False  # takes equation (3) as it is printed
    min_gap: NonNegative | None = None  # all count if the groups are nearer than so many median deviations; null: never
    labels: Literal["fixed", "learned"] = "fixed"  # whether the dummies' labels stay, or are fitted with the samples

    def check(self) -> None:
        require(
            not (self.normalise and (self.literal or self.scale != 1)),
            "Normalised targets have no scale, so keep.scale and keep.literal need keep.normalise=false.",
        )

    @property
    def needs(self) -> Needs:
        return super().needs | Needs(classes=True, whole_model=True)  # an update is inverted to samples of each class

    def init(self, task: Task, gen: torch.Generator) -> Slot:
        like = next(iter(task.model.values()))
        start = torch.randn(task.classes * self.samples, *task.shape, generator=gen, dtype=like.dtype)
        return super().init(task, gen) | {"start": start.to(like.device)}

    def scores(self, slot: Slot, task: Task, before: Model, reply: Reply, round: int) -> Tensor:
        assert task.logits is not None
        target = self.targets(before, reply, round)
        y = balanced(task.classes, self.samples).to(slot["start"].device)
        start, soft = slot["start"], F.one_hot(y, task.classes).to(slot["start"]) if self.labels == "learned" else None
        how = self.iterations, self.rate, task.tell, soft, task.layers
        dummies = inverted(task.logits, before, target, start, y, *how)
        changed = dummies - start  # z_i
        return summed(wasserstein(changed.reshape(len(changed), task.classes, self.samples, -1)))

    def targets(self, before: Model, reply: Reply, round: int) -> Model:
        """G_i of every reply (3)."""
        scale = exp(min((round - 1) * log(self.scale), log(MOST)))
        rate, steps = reply.report["rate"], reply.report["steps" if self.literal else "reach"]
        return targets(before, reply.upload["model"], rate, steps, scale, self.literal, self.normalise)


@dataclass(frozen=True)
class UpdateDistance(Majority):
    """The same rule with D_il = |G_i - G_l|, the distance between the updates themselves: a baseline for inversion."""

    copies = 5  # gradients, in float64

    metric: Metric = "l1"  # how the distance of two updates is measured
    min_gap: NonNegative | None = None  # all count if the groups are nearer than so many median deviations; null: never

    def scores(self, slot: Slot, task: Task, before: Model, reply: Reply, round: int) -> Tensor:
        gradients = targets(before, reply.upload["model"], reply.report["rate"], reply.report["reach"])
        return summed(apart(tree.vector(gradients).double(), self.metric))
