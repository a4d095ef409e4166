"""Active federated learning (Goetz et al. 2019): clients with a high loss are drawn more often.

The part is called *active*, because AFL is also the name of agnostic federated learning.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

import torch
from torch import Tensor

from fedkin.contract import Needs
from fedkin.core.tree import Model
from fedkin.fields import NonNegative, Share
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Select
from fedkin.select.draw import drawn
from fedkin.select.schedule import ClientFraction, whole


@dataclass(frozen=True)
class Active(Select):
    """The value of client i is v_i = sqrt(n_i) times its mean loss at the model that it received last.

    The clients with the floor(alpha1 n) smallest values cannot be drawn by value. Of the m clients of a round,
    ceil((1 - alpha3) m) are drawn in proportion to exp(alpha2 v), the rest uniformly from all others. Before round 1
    every client reports its loss once; the cost of this is counted.
    """

    alpha1: Share = 0.75  # the share of the clients, those of least value, that is not drawn by value
    alpha2: NonNegative = 0.01  # how sharply the draw prefers high values; 0: not at all
    alpha3: Share = 0.1  # the share of a round's clients that is drawn uniformly
    fraction: ClientFraction = 0.1  # the share of the clients that takes part

    @property
    def needs(self) -> Needs:
        return Needs(replies=True, reports=("loss",), survey=True)

    def init(self, task: Task) -> Slot:
        return {"values": torch.full((task.n,), -torch.inf, dtype=torch.float64)}

    def share(self, task: Task) -> float:
        return whole(self.fraction, task.n) / task.n

    def __call__(self, slot: Slot, task: Task, round: int, gen: torch.Generator) -> tuple[Tensor, Slot]:
        m = whole(self.fraction, task.n)
        values = torch.where(slot["values"].isfinite(), slot["values"], -torch.inf)
        values[values.argsort(stable=True)[: floor(self.alpha1 * task.n + 1e-9)]] = -torch.inf
        chance = torch.where(values.isfinite(), torch.exp(self.alpha2 * (values - values.max())), 0.0)
        valued = ceil((1 - self.alpha3) * m - 1e-9)
        if m == 1:  # one client cannot be divided, so its share is a chance
            valued = int(torch.rand((), generator=gen) >= self.alpha3)
        known = values.isfinite().any() and valued > 0
        first = drawn(chance, valued, gen) if known else torch.zeros(0, dtype=torch.int64)
        others = torch.ones(task.n, dtype=torch.float64).index_fill(0, first, 0.0)
        rest = drawn(others, m - len(first), gen) if m > len(first) else first[:0]
        return torch.cat([first, rest]).sort().values, slot

    def observe(
        self,
        slot: Slot,
        task: Task,
        sent: Sent,
        reply: Reply,
        kept: Tensor,
        after: Model | None,
        gen: torch.Generator,
    ) -> Slot:
        found = reply.report["size"].sqrt() * reply.report["loss"]
        found = torch.where(found.isfinite(), found.double(), slot["values"][reply.ids])
        return {"values": slot["values"].index_copy(0, reply.ids, found)}

    def marks(self, slot: Slot) -> dict[str, Tensor]:
        return {"score": slot["values"]}
