"""Does a client pull where the model has been going? PFedRe's rule with a score that needs no inversion."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.keep.relevance import Judging
from fedkin.parts import Reply, Slot, Task

NOTHING = 1e-12  # a norm below this has no direction


@dataclass(frozen=True)
class Alignment(Judging):
    """r_i = 1 - cos(u_i, (omega - omega^0) + mean of u), u_i = omega_i - omega.

    The way the model has come so far is the work of the majority over all rounds. A client with wrong labels pulls back
    along it, however heterogeneous the clients are and however small the updates of those that have learned their
    labels become; that is what distances between updates, inverted or not, lose sight of. In the first round it is the
    direction of the mean update. `docs/papers/pfedre.md` has the comparison.
    """

    min_gap: float | None = None

    def scores(self, slot: Slot, task: Task, before: Model, reply: Reply, round: int) -> Tensor:
        updates = tree.vector(tree.update(before, reply.upload["model"])).double()  # (m, d)
        start = tree.vector(tree.repeated(task.model, 1)).double()
        way = tree.vector(before).double() - start + updates.mean(0)  # (m, d); equal rows where one model was sent
        lengths = (updates.norm(dim=1) * way.norm(dim=1)).clamp(min=NOTHING)
        found: Tensor = 1 - (updates * way).sum(1) / lengths
        return found
