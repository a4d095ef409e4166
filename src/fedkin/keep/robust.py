"""A filter of our own that is hard to fool: who goes the way of the others, and how far, over all rounds."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.errors import require
from fedkin.fields import BelowOne, Positive
from fedkin.keep.alignment import NOTHING
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Keep

PASSES = 3  # how often a round's way is made anew without those who do not go it
OPPOSED = 2  # of so many classes, a client with one pulls straight against a client with the other, and both are right
FEWEST = 4  # judged clients below which there is no majority to differ from


def middle(values: Tensor) -> Tensor:
    """The median; of two middle values, their mean."""
    return values.quantile(0.5)


def clipped(updates: Tensor) -> Tensor:
    """The updates, none of them longer than the median of their lengths."""  # (m, d)
    lengths = updates.norm(dim=1, keepdim=True)
    found: Tensor = updates * (middle(lengths) / lengths.clamp(min=NOTHING)).clamp(max=1)
    return found


def straightness(came: Tensor, updates: Tensor, trusted: Tensor) -> Tensor:
    """cos(c_i, (omega - omega^0) + mean of the other trusted c): how straight each update goes the way of the others.

    came: how the model that each client was sent has moved since the start, (m, d); trusted: (m,) bool.
    """  # (m,)
    mine = updates * trusted.to(updates)[:, None]
    others = (trusted.sum() - trusted.long()).clamp(min=1).to(updates)
    way = came + (mine.sum(0) - mine) / others[:, None]
    found: Tensor = (updates * way).sum(1) / (updates.norm(dim=1) * way.norm(dim=1)).clamp(min=NOTHING)
    return found


def worst(scores: Tensor, most: int) -> Tensor:
    """Which scores are above 1, but no more than the `most` largest of them; nan is no score."""  # (n,) bool
    order = scores.nan_to_num(-torch.inf).argsort(descending=True, stable=True)
    return (scores > 1) & torch.zeros_like(scores, dtype=torch.bool).index_fill(0, order[:most], True)


@dataclass(frozen=True)
class Robust(Keep):
    """r_i = max((1 - s_i) / (1 - low), s_i / high, l_i / large); a client does not count while r_i is above 1.

    s_i is how straight the updates of client i go the way of the others (`straightness`), summed over the rounds in
    which it was judged, in units of what was usual in these rounds: the sum of their medians over clients that count.
    l_i is how long they are for each step, in units of the round's median, averaged. An update that has nothing to do
    with those of the others has s_i = 0, one that pulls back is below 0, and an attacker that hides in the middle of
    the others is straighter than anybody. None of this depends on how many are irrelevant, so where nobody is, hardly
    anybody is left out. Where more than half would stray there is no way to stray from, and of two classes each client
    may pull its own way: then only lengths count. docs/papers/robust.md has the box, and where this filter loses.
    """

    copies = 12  # updates and ways, in float64

    low: BelowOne = 0.3  # how straight a client must go, as a share of what is usual
    high: Positive = 2.0  # how straight it may go, as a multiple of what is usual
    large: Positive = 4.0  # how long its updates may be, as a multiple of the median

    def check(self) -> None:
        require(self.high > 1 and self.large > 1, "keep.high and keep.large are multiples of the median, above 1.")

    def init(self, task: Task, gen: torch.Generator) -> Slot:
        zero = torch.zeros(task.n, dtype=torch.float64)
        sums = {"straight": zero, "usual": zero, "long": zero, "judged": zero}
        return sums | {"out": zero, "divergence": torch.full_like(zero, torch.nan)}

    def __call__(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, round: int, gen: torch.Generator
    ) -> tuple[Tensor, Slot]:
        ids, before = reply.ids, sent.to(reply.ids)["model"]
        updates = tree.vector(tree.update(before, reply.upload["model"])).double()  # (m, d)
        first = {name: task.model[name] for name in before}  # of the layers that were sent
        came = tree.vector(before).double() - tree.vector(tree.repeated(first, 1)).double()
        each = updates.norm(dim=1).cpu() / (reply.report["rate"] * reply.report["reach"]).double().cpu()
        long = slot["long"].index_add(0, ids, each / middle(each).clamp(min=NOTHING))
        judged = slot["judged"].index_add(0, ids, torch.ones_like(each))
        known, updates = int((judged > 0).sum()), clipped(updates)
        most = known // 2 if known >= FEWEST else 0
        large = long / judged / self.large
        out = worst(torch.where(slot["out"] > 0, torch.inf, large), most)
        for _ in range(PASSES):
            now = straightness(came, updates, ~out[ids].to(updates.device)).cpu()
            straight = slot["straight"].index_add(0, ids, now)
            common = middle(now[~out[ids]] if not out[ids].all() else now)
            usual = slot["usual"].index_add(0, ids, common.expand_as(now))
            strayed = self.strayed(straight, usual)
            out = worst(torch.maximum(strayed, large), most)
        if task.classes == OPPOSED or int((strayed > 1).sum()) > most:  # a way that most clients do not go is none
            strayed = 0 * strayed
        divergence = torch.maximum(strayed, large)
        out = worst(divergence, most)
        sums = {"straight": straight, "usual": usual, "long": long, "judged": judged}
        return (~out[ids]).double(), sums | {"out": out.double(), "divergence": divergence}

    def strayed(self, straight: Tensor, usual: Tensor) -> Tensor:
        """How far clients are from going the way of the others, up to 1 if they go it; nan of those never judged."""
        share = torch.where(usual > 0, straight / usual, 0 * straight / usual + 1)  # without a way, nobody leaves it
        found: Tensor = torch.maximum((1 - share) / (1 - self.low), share / self.high)
        return found

    def marks(self, slot: Slot) -> dict[str, Tensor]:
        return {"divergence": slot["divergence"]}
