"""PFedRe's rule for whose update counts: the majority of a clustering of scores (eq. 5)."""

from __future__ import annotations

import torch
from torch import Tensor

from fedkin.core.tree import Model
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Keep

SAME = 1e-12  # costs that differ by less than this share are equal


def two_median(scores: Tensor) -> Tensor:
    """Which clients are in the larger group when the scores are divided into two groups.

    The sorted scores are cut where the sum of the distances to the medians of the two groups is smallest; every cut is
    tried. Of equally good cuts the one with the larger majority is taken. Of two groups of the same size, the one with
    the lower scores is the majority. If all scores are equal, all clients are in it.
    """
    order = scores.double().argsort(stable=True)
    values = scores.double()[order]
    m = len(values)
    if m < 2 or values[0] == values[-1]:
        return torch.ones(m, dtype=torch.bool, device=scores.device)
    cuts = torch.arange(1, m, device=scores.device)
    total = torch.cat([values.new_zeros(1), (values - values[0]).cumsum(0)])

    def spent(first: Tensor, last: Tensor) -> Tensor:
        """The distances of values[first:last] to their median, summed: the upper half less the lower half."""
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
    """As `two_median`, but all clients are in it if the two medians are less than `min_gap` times the median absolute
    deviation apart (A-R8)."""
    mask = two_median(scores)
    if min_gap is None or mask.all():
        return mask
    gap = (scores[mask].quantile(0.5) - scores[~mask].quantile(0.5)).abs()
    deviation = (scores - scores.quantile(0.5)).abs().quantile(0.5)
    return mask if gap >= min_gap * deviation else torch.ones_like(mask)


class Majority(Keep):
    """Every reply gets a score r_i, and the replies in the majority of the 2-median clustering of the scores count.

    The slot holds the last score of each client ("divergence"), and in how many rounds it replied ("judged") and its
    update counted ("relevant").
    """

    min_gap: float | None

    def init(self, task: Task, gen: torch.Generator) -> Slot:
        zero = torch.zeros(task.n, dtype=torch.float64)
        return {"divergence": torch.full_like(zero, torch.nan), "judged": zero, "relevant": zero}

    def scores(self, slot: Slot, task: Task, before: Model, reply: Reply, round: int) -> Tensor:
        """r_i of every reply, lower for more relevant ones; nan for a reply that cannot be compared."""  # (m,) float64
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
