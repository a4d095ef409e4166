"""AdaFL's attention: clients far from the common model are drawn more often (eq. 2)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.parts import Reply, Select, Sent, Slot, Task
from fedkin.select.draw import drawn
from fedkin.select.schedule import Schedule, fair, scheduled, whole

NOTHING = 1e-12  # distances that sum to less say nothing
MENDED = 100  # rounds after which the scores are made to sum to one again, against rounding


def updated(scores: Tensor, ids: Tensor, distance: Tensor, alpha: float) -> Tensor:
    """a_i <- alpha a_i + (1 - alpha) (d_i / sum d) sum a, over the selected; the others keep theirs. (2)"""
    total = distance.double().sum()
    if not (NOTHING < total < torch.inf):
        return scores
    mine = scores[ids]
    return scores.index_copy(0, ids, alpha * mine + (1 - alpha) * distance.double() / total * mine.sum())


@dataclass(frozen=True)
class Attention(Select):
    """Scores start at n_i / n and are a probability of being drawn; alpha = 1 leaves them there.

    The distance of a client is between the new common model and what it uploaded; for methods with a model a client,
    between what it was sent and what it returned. `fraction` may be a number or a schedule.
    """

    learns = True

    alpha: float = 0.9
    fraction: float | Schedule = 0.1

    def __post_init__(self) -> None:
        require(0 <= self.alpha <= 1, f"select.alpha must be from 0 to 1 (1: attention off), not {self.alpha}.")
        if not isinstance(self.fraction, Schedule):
            fair(self.fraction)

    @property
    def extends(self) -> bool:  # type: ignore[override]
        return scheduled(self.fraction).extends

    def init(self, task: Task) -> Slot:
        sizes = task.sizes.double()
        return {"scores": sizes / sizes.sum(), "rounds": torch.zeros((), dtype=torch.int64)}

    def share(self, task: Task) -> float:
        schedule = scheduled(self.fraction)
        return sum(schedule.at(t, task.rounds) for t in range(1, task.rounds + 1)) / task.rounds

    def __call__(self, slot: Slot, task: Task, round: int, gen: torch.Generator) -> tuple[Tensor, Slot]:
        k = whole(scheduled(self.fraction).at(round, task.rounds), task.n)
        return drawn(slot["scores"], k, gen), slot

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
        scores = updated(slot["scores"], reply.ids, moved(sent, reply, after), self.alpha)
        rounds = slot["rounds"] + 1
        return {"scores": scores / scores.sum() if rounds % MENDED == 0 else scores, "rounds": rounds}

    def marks(self, slot: Slot) -> dict[str, Tensor]:
        return {"score": slot["scores"]}

    def log(self, slot: Slot) -> dict[str, float]:
        """How far attention has moved from even: its entropy (as a share of the largest), and its largest over its
        smallest score."""
        a = slot["scores"]
        least = float(a.min())
        entropy = float(-(a * torch.log(a.clamp(min=torch.finfo(torch.float64).tiny))).sum())
        most = float(torch.log(torch.tensor(float(len(a))))) if len(a) > 1 else 1.0
        return {"entropy": entropy / most} | ({"max_min": float(a.max()) / least} if least > 0 else {})


def moved(sent: Sent, reply: Reply, after: Model | None) -> Tensor:
    """d_i = |W - W_i|, W the new common model or, where there is none, what the client was sent."""  # (k,)
    uploads = reply.upload["model"]
    squares = torch.zeros(len(reply.ids), dtype=torch.float64)
    start = sent.to(reply.ids)["model"] if after is None else None
    for name, value in uploads.items():
        from_ = start[name] if start is not None else after[name]  # type: ignore[index]
        apart = (value - from_).reshape(len(value), -1)
        squares += torch.linalg.vector_norm(apart, dim=1, dtype=torch.float64).cpu() ** 2
    return squares.sqrt()
