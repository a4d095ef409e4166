"""After some rounds, clients that were mostly judged irrelevant (or relevant) take part no longer: PFedRe's Fig. 6."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.parts import Reply, Select, Sent, Slot, Task
from fedkin.select.uniform import Uniform


@dataclass(frozen=True)
class Dismiss(Select):
    """The selection of `base`; from round `after` + 1 on without the clients whose updates did not count (`who`:
    "irrelevant") or did count ("relevant") in more than half of the rounds up to then. If nobody would be left, nobody
    is dismissed."""

    after: int = 50
    who: Literal["irrelevant", "relevant"] = "irrelevant"
    base: Select = field(default_factory=lambda: Uniform(fraction=1.0))

    def __post_init__(self) -> None:
        require(self.after >= 1, f"select.after must be at least 1, not {self.after}.")
        known = self.who in ("irrelevant", "relevant")
        require(known, f"select.who is 'irrelevant' or 'relevant', not '{self.who}'.")
        require(isinstance(self.base, Select), f"select.base is a Select part, not {self.base!r}.")

    @property
    def asks(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.base.asks

    @property
    def needs_model(self) -> bool:  # type: ignore[override]
        return self.base.needs_model

    @property
    def surveys(self) -> bool:  # type: ignore[override]
        return self.base.surveys

    @property
    def extends(self) -> bool:  # type: ignore[override]
        return self.base.extends

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

    def __call__(self, slot: Slot, task: Task, round: int, gen: torch.Generator) -> tuple[Tensor, Slot]:
        ids, base = self.base(slot["base"], task, round, gen)
        slot = slot | {"base": base, "round": torch.tensor(round)}
        if round <= self.after:
            return ids, slot
        left = ids[~self.dismissed(slot)[ids]]
        return (left if len(left) else ids), slot

    def dismissed(self, slot: Slot) -> Tensor:
        """Who takes part no longer, by what was judged so far."""  # (n,) bool
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
        if slot["round"] > self.after or not reply.upload:  # a survey judges nobody
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
