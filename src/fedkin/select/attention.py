"""AdaFL's attention: clients whose models are far from the common model are drawn more often (eq. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from fedkin.contract import Needs
from fedkin.core.tree import Model
from fedkin.fields import Rule
from fedkin.messages import Reply, Sent, Slot, Task
from fedkin.parts import Select
from fedkin.select.draw import drawn
from fedkin.select.schedule import ClientFraction, Schedule, scheduled, whole

NOTHING = 1e-12  # distances that sum to less say nothing
LOOKED = 1000  # rounds by which the share of a schedule is estimated
MENDED = 100  # rounds after which the scores are made to sum to one again, against rounding


def updated(scores: Tensor, ids: Tensor, distance: Tensor, alpha: float) -> Tensor:
    """a_i <- alpha a_i + (1 - alpha) (d_i / sum d) sum a for the clients in `ids`; the others keep their scores. (2)"""
    total = distance.double().sum()
    if not (NOTHING < total < torch.inf):
        return scores
    mine = scores[ids]
    return scores.index_copy(0, ids, alpha * mine + (1 - alpha) * distance.double() / total * mine.sum())


@dataclass(frozen=True)
class Attention(Select):
    """Clients are drawn in proportion to their scores. Scores start at n_i / n and sum to one; with alpha = 1 they
    never change.

    d_i is the distance between the new common model and the model that client i uploaded. In a method with a model for
    each client it is the distance between the model that the client was sent and the model that it uploaded. `fraction`
    is a number or a schedule.
    """

    alpha: Annotated[
        float,
        Rule(lambda v: 0 <= v <= 1, "{field} must be from 0 to 1 (1: attention off), not {value}.", "from 0 to 1"),
    ] = 0.9  # how much of the old score stays in a round; 1: scores never change
    fraction: ClientFraction | Schedule = 0.1  # the share of the clients that takes part, a number or a schedule

    @property
    def needs(self) -> Needs:
        return Needs(replies=True, start=True) | scheduled(self.fraction).needs

    def init(self, task: Task) -> Slot:
        sizes = task.sizes.double()
        return {"scores": sizes / sizes.sum(), "rounds": torch.zeros((), dtype=torch.int64)}

    def share(self, task: Task) -> float:
        schedule = scheduled(self.fraction)
        rounds = range(1, task.rounds + 1, max(1, task.rounds // LOOKED))
        return sum(schedule.at(t, task.rounds) for t in rounds) / len(rounds)

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
        """How uneven the scores are: their entropy as a share of the largest possible one, and the largest score
        divided by the smallest."""
        a = slot["scores"]
        least = float(a.min())
        entropy = float(-(a * torch.log(a.clamp(min=torch.finfo(torch.float64).tiny))).sum())
        most = float(torch.log(torch.tensor(float(len(a))))) if len(a) > 1 else 1.0
        return {"entropy": entropy / most} | ({"max_min": float(a.max()) / least} if least > 0 else {})


def moved(sent: Sent, reply: Reply, after: Model | None) -> Tensor:
    """d_i = |W - W_i|. W is the new common model or, if there is none, the model that the client was sent."""  # (k,)
    uploads = reply.upload["model"]
    squares = torch.zeros(len(reply.ids), dtype=torch.float64)
    start = sent.to(reply.ids)["model"] if after is None else None
    for name, value in uploads.items():
        from_ = start[name] if start is not None else after[name]  # type: ignore[index]
        apart = (value - from_).reshape(len(value), -1)
        squares += torch.linalg.vector_norm(apart, dim=1, dtype=torch.float64).cpu() ** 2
    return squares.sqrt()
