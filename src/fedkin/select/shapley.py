"""S-FedAvg (Nagalapatti and Narayanam 2021): clients that raise the accuracy on the server's own samples are drawn
more often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fedkin.contract import Needs
from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.errors import BadInput
from fedkin.fields import Count, Positive, Share
from fedkin.messages import Reply, Sent, Slot, Task, Tell, nobody
from fedkin.parts import Select
from fedkin.select.draw import drawn
from fedkin.select.schedule import ClientFraction, whole


@dataclass(frozen=True)
class Shapley(Select):
    """Clients are drawn with P = softmax(phi / temperature). For the clients that reply,
    phi_i <- alpha phi_i + beta s_i.

    s_i is the Shapley value of client i, estimated by `permutations` random orders: the mean gain in validation
    accuracy when the model of the client joins the mean of those before it. The accuracy of a coalition is computed
    once in a round. Accuracies are fractions here; the temperature 0.01 is 1 if they are percents.
    """

    alpha: Share = 0.75  # how much of a client's value stays in a round
    beta: Share = 0.25  # how much of its new Shapley value is added
    temperature: Positive = 0.01  # small: the most valuable clients are drawn nearly always; large: all alike
    permutations: Count = 10  # random orders of the replies by which Shapley values are estimated
    fraction: ClientFraction = 0.1  # the share of the clients that takes part

    @property
    def needs(self) -> Needs:
        return Needs(replies=True, common_model=True, whole_model=True, start=True, classes=True)

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
            """The validation accuracy of the mean of these clients' models, or of the model sent if there are none."""
            if coalition not in known:
                some = tree.rows(uploads, torch.tensor(sorted(coalition), dtype=torch.int64))
                known[coalition] = accuracy(task, tree.mapped(lambda v: v.mean(0), some) if coalition else before)
            return known[coalition]

        orders = [torch.randperm(len(reply.ids), generator=gen).tolist() for _ in range(self.permutations)]
        s = torch.tensor(shapley(value, orders, task.tell), dtype=torch.float64)
        phi = slot["phi"]
        return {"phi": phi.index_copy(0, reply.ids, self.alpha * phi[reply.ids] + self.beta * s)}

    def marks(self, slot: Slot) -> dict[str, Tensor]:
        return {"score": slot["phi"]}


def shapley(value: Callable[[frozenset[int]], float], orders: list[list[int]], tell: Tell = nobody) -> list[float]:
    """The mean marginal gain of each player over these orders. Over all orders it is the player's Shapley value."""
    total = [0.0] * len(orders[0])
    for number, order in enumerate(orders):
        tell("valuing clients in random orders", number, len(orders))
        joined: frozenset[int] = frozenset()
        for player in order:
            larger = joined | {player}
            total[player] += value(larger) - value(joined)
            joined = larger
    return [gain / len(orders) for gain in total]


@torch.no_grad()
def accuracy(task: Task, model: Model) -> float:
    """The accuracy of the model on the server's own samples."""
    batch = task.validation
    assert batch is not None
    assert task.logits is not None
    return float((task.logits(model, batch).argmax(1) == batch["y"]).double().mean())
