"""S-FedAvg (Nagalapatti and Narayanam 2021): clients are drawn by what they add to the server's own validation set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.errors import BadInput, require
from fedkin.parts import Reply, Select, Sent, Slot, Task
from fedkin.select.draw import drawn
from fedkin.select.schedule import fair, whole


@dataclass(frozen=True)
class Shapley(Select):
    """P = softmax(phi / temperature), phi_i <- alpha phi_i + beta s_i for the selected, s_i their Shapley values by
    `permutations` random orders: the mean gain in validation accuracy as a client joins the mean of the updates.

    Coalitions are remembered within a round. The temperature 0.01 on fractions is 1 on percents.
    """

    learns = True

    needs_model: ClassVar[bool] = True

    alpha: float = 0.75
    beta: float = 0.25
    temperature: float = 0.01
    permutations: int = 10
    fraction: float = 0.1

    def __post_init__(self) -> None:
        fair(self.fraction)
        require(self.temperature > 0, f"select.temperature must be positive, not {self.temperature}.")
        require(self.permutations >= 1, f"select.permutations must be at least 1, not {self.permutations}.")
        for name in ("alpha", "beta"):
            require(0 <= getattr(self, name) <= 1, f"select.{name} must be from 0 to 1, not {getattr(self, name)}.")

    def init(self, task: Task) -> Slot:
        if task.validation is None:
            raise BadInput("S-FedAvg needs samples of the server's own; take some out with --server-validation 1000.")
        return {"phi": torch.full((task.n,), 1.0 / task.n, dtype=torch.float64)}

    def cautions(self, task: Task) -> list[str]:
        have = 0 if task.validation is None else len(task.validation["y"])
        return [f"S-FedAvg's server has {have:,} clean samples of its own, which the server of other methods has not."]

    def share(self, task: Task) -> float:
        return whole(self.fraction, task.n) / task.n

    def __call__(self, slot: Slot, task: Task, round: int, gen: torch.Generator) -> tuple[Tensor, Slot]:
        p = torch.softmax(slot["phi"] / self.temperature, 0)
        return drawn(p, whole(self.fraction, task.n), gen), slot

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
        before = sent.shared["model"]
        uploads = reply.upload["model"]
        known: dict[frozenset[int], float] = {}

        def value(coalition: frozenset[int]) -> float:
            """The validation accuracy of the mean of these clients' models; of nobody's, that of the model sent."""
            if coalition not in known:
                some = tree.rows(uploads, torch.tensor(sorted(coalition), dtype=torch.int64))
                known[coalition] = accuracy(task, tree.mapped(lambda v: v.mean(0), some) if coalition else before)
            return known[coalition]

        orders = [torch.randperm(len(reply.ids), generator=gen).tolist() for _ in range(self.permutations)]
        s = torch.tensor(shapley(value, orders), dtype=torch.float64)
        phi = slot["phi"]
        return {"phi": phi.index_copy(0, reply.ids, self.alpha * phi[reply.ids] + self.beta * s)}

    def marks(self, slot: Slot) -> dict[str, Tensor]:
        return {"score": slot["phi"]}


def shapley(value: object, orders: list[list[int]]) -> list[float]:
    """The mean marginal gain of each player over these orders; over all orders, its Shapley value."""
    total = [0.0] * len(orders[0])
    for order in orders:
        joined: frozenset[int] = frozenset()
        for player in order:
            larger = joined | {player}
            total[player] += value(larger) - value(joined)  # type: ignore[operator]
            joined = larger
    return [gain / len(orders) for gain in total]


@torch.no_grad()
def accuracy(task: Task, model: Model) -> float:
    """On the server's own samples."""
    batch = task.validation
    assert batch is not None
    assert task.logits is not None
    return float((task.logits(model, batch).argmax(1) == batch["y"]).double().mean())
