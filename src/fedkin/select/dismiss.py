"""Clients that were mostly found irrelevant (or relevant) take part no longer after some rounds: PFedRe's Fig. 6."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from fedkin.contract import Needs
from fedkin.core.tree import Model
from fedkin.fields import Count
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Select
from fedkin.select.uniform import Uniform


@dataclass(frozen=True)
class Dismiss(Select):
    """`base` selects the clients. From round `after` + 1 on, some of the clients are dismissed: with
    `who="irrelevant"` those whose updates did not count in more than half of the rounds 1 to `after` in which they
    replied, with `who="relevant"` those whose updates did. If all selected clients are dismissed, all of them take part
    after all."""

    after: Count = 50  # the rounds that are watched before clients are dismissed
    who: Literal["irrelevant", "relevant"] = "irrelevant"  # which clients are dismissed
    base: Select = field(default_factory=lambda: Uniform(fraction=1.0))  # who is selected before that

    @property
    def needs(self) -> Needs:
        return self.base.needs

    def init(self, task: Task) -> Slot:
        zero = torch.zeros(task.n, dtype=torch.float64)
        return {
            "base": self.base.init(task),
            "judged": zero,
            "counted": zero,
            "round": torch.zeros((), dtype=torch.int64),
        }

    def share(self, task: Task) -> float:
        return self.base.share(task)

    def cautions(self, task: Task) -> list[str]:
        return self.base.cautions(task)

    def __call__(self, slot: Slot, task: Task, round: int, gen: torch.Generator) -> tuple[Tensor, Slot]:
        ids, base = self.base(slot["base"], task, round, gen)
        slot = slot | {"base": base, "round": torch.tensor(round)}
        if round <= self.after:
            return ids, slot
        left = ids[~self.dismissed(slot)[ids]]
        return (left if len(left) else ids), slot

    def dismissed(self, slot: Slot) -> Tensor:
        """Which of all clients are dismissed. A client is dismissed by its replies in rounds 1 to `after`."""  # (n,)
        counted = slot["counted"] if self.who == "relevant" else slot["judged"] - slot["counted"]
        found: Tensor = 2 * counted > slot["judged"]
        return found

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
        slot = slot | {"base": self.base.observe(slot["base"], task, sent, reply, kept, after, gen)}
        if slot["round"] > self.after or not reply.upload:  # a survey has no uploads
            return slot
        return slot | {
            "judged": slot["judged"].index_add(0, reply.ids, torch.ones(len(reply.ids), dtype=torch.float64)),
            "counted": slot["counted"].index_add(0, reply.ids, (kept > 0).double()),
        }

    def log(self, slot: Slot) -> dict[str, float]:
        gone = self.dismissed(slot).sum() if slot["round"] > self.after else 0
        return self.base.log(slot["base"]) | {"dismissed": float(gone)}

    def marks(self, slot: Slot) -> dict[str, Tensor]:
        return self.base.marks(slot["base"])
