"""The filter that was tried before `Robust`: direction and distance as standardised scores, added and remembered."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.keep.majority import two_median
from fedkin.keep.relevance import apart, summed
from fedkin.keep.robust import clipped, middle, straightness
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Keep


def standardised(values: Tensor) -> Tensor:
    """How many robust deviations each value lies above the median, from -10 to 10."""
    deviation = 1.4826 * middle((values - middle(values)).abs())
    return ((values - middle(values)) / deviation.clamp(min=1e-12)).clamp(-10, 10)


@dataclass(frozen=True)
class ZScores(Keep):
    """The mean over rounds of z(1 - straightness of the clipped update) + z(sum of its L1 distances to the others),
    and the majority of the 2-median clustering of these means."""

    def init(self, task: Task, gen: torch.Generator) -> Slot:
        zero = torch.zeros(task.n, dtype=torch.float64)
        return {"total": zero, "judged": zero, "divergence": torch.full_like(zero, torch.nan)}

    def __call__(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, round: int, gen: torch.Generator
    ) -> tuple[Tensor, Slot]:
        ids, before = reply.ids, sent.to(reply.ids)["model"]
        updates = tree.vector(tree.update(before, reply.upload["model"])).double()
        came = tree.vector(before).double() - tree.vector(tree.repeated(task.model, 1)).double()
        trusted = torch.ones(len(ids), dtype=torch.bool)
        now = standardised(-straightness(came, clipped(updates), trusted)) + standardised(summed(apart(updates)))
        total = slot["total"].index_add(0, ids, now)
        judged = slot["judged"].index_add(0, ids, torch.ones_like(now))
        divergence = total / judged
        return two_median(divergence[ids]).double(), {"total": total, "judged": judged, "divergence": divergence}

    def marks(self, slot: Slot) -> dict[str, Tensor]:
        return {"divergence": slot["divergence"]}
