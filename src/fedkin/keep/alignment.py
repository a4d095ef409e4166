"""Does an update point where the model has been going? PFedRe's rule with a score that needs no inversion."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.fields import NonNegative
from fedkin.keep.majority import Majority
from fedkin.messages import Reply, Slot, Task

NOTHING = 1e-12  # a norm below this has no direction


@dataclass(frozen=True)
class Alignment(Majority):
    """r_i = 1 - cos(u_i, (omega - omega^0) + mean of u), u_i = omega_i - omega.

    omega - omega^0 is how the model has moved since the start; in round 1 it is zero, and the mean update gives the
    direction. Most clients have moved the model this way over all rounds, so the update of a client with wrong labels
    points back along it. This stays so if the clients are heterogeneous, and if the updates of clients that have
    learned their labels become small; distances between updates, inverted or not, do not show it then.
    One huge update sets the direction for all, though: distances (`UpdateDistance`, `MultiKrum`) are the safer default,
    and `Robust` is made against both. Where nobody is irrelevant a minority of clean clients is left out in each round
    unless there is a `min_gap`, which hides some attacks (docs/papers/robust.md has how many of each).
    """

    copies = 7  # updates and ways, in float64

    min_gap: NonNegative | None = None  # all count if the groups are nearer than so many median deviations; null: never

    def scores(self, slot: Slot, task: Task, before: Model, reply: Reply, round: int) -> Tensor:
        updates = tree.vector(tree.update(before, reply.upload["model"])).double()  # (m, d)
        first = {name: task.model[name] for name in before}  # of the layers that were sent
        start = tree.vector(tree.repeated(first, 1)).double()
        way = tree.vector(before).double() - start + updates.mean(0)  # (m, d); equal rows where one model was sent
        lengths = (updates.norm(dim=1) * way.norm(dim=1)).clamp(min=NOTHING)
        found: Tensor = 1 - (updates * way).sum(1) / lengths
        return found
