"""Several filters look at the same updates, and none of them decides."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.contract import Needs
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Keep


@dataclass(frozen=True)
class Panel(Keep):
    """Every reply has weight 1; the slot counts by filter in how many rounds each client's update would not count."""

    filters: tuple[Keep, ...] = ()  # the filters that are asked, and decide nothing

    @property
    def needs(self) -> Needs:
        found = super().needs
        for one in self.filters:
            found = found | one.needs
        return found

    def init(self, task: Task, gen: torch.Generator) -> Slot:
        slot: Slot = {"asked": torch.zeros(task.n)}
        for i, one in enumerate(self.filters):
            slot |= {f"slot {i}": one.init(task, gen), f"out {i}": torch.zeros(task.n)}
        return slot

    def __call__(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, round: int, gen: torch.Generator
    ) -> tuple[Tensor, Slot]:
        everyone = torch.ones(len(reply.ids), dtype=torch.float64)
        after: Slot = {"asked": slot["asked"].index_add(0, reply.ids, everyone.float())}
        for i, one in enumerate(self.filters):
            kept, own = one(slot[f"slot {i}"], task, sent, reply, round, gen)
            out = slot[f"out {i}"].index_add(0, reply.ids, (kept == 0).float())
            after |= {f"slot {i}": own, f"out {i}": out}
        return everyone, after

    def left_out(self, slot: Slot) -> list[Tensor]:
        """Return for each filter the share of rounds in which it would have left each client out."""  # (n,) each
        asked = slot["asked"].clamp(min=1)
        return [slot[f"out {i}"] / asked for i in range(len(self.filters))]
