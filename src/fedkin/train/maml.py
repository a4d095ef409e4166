"""Per-FedAvg's client: it learns a model that is good after one step on the client's own data."""

from dataclasses import dataclass
from typing import Any, Literal

import torch

from fedkin.core import tree
from fedkin.core.tree import Batch, Message, Model
from fedkin.errors import require
from fedkin.fields import NonNegative, Positive
from fedkin.messages import Objective
from fedkin.train.sgd import SGD

NOTHING = 1e-12  # a gradient shorter than this has no direction to look along


@dataclass(frozen=True)
class MAML(SGD):
    """w~ = w - alpha g_D1(w), v = g_D2(w~), then first order (FO) w <- w - eta v, or Hessian-free (HF)
    w <- w - eta (v - alpha h), h = [ g_D3(w + e v) - g_D3(w - e v) ] / 2e, e = 0.01 / |v|.

    D1, D2, D3 are independent batches; with `epochs` each has its own shuffles, and a client takes a step for every
    batch of an epoch. A client is scored by w - alpha g_B(w), with B one of its *training* batches.
    """

    eta: Positive = 0.003  # the rate of the outer step
    alpha: NonNegative = 0.03  # the rate of the step by which a client adapts the common model
    order: Literal["FO", "HF"] = "FO"  # first order, or Hessian-free with second derivatives by differences

    def check(self) -> None:
        super().check()
        plain = self.momentum == 0 and self.weight_decay == 0
        require(plain, "Per-FedAvg's client has no momentum and no weight decay; set both to 0.")

    def alone(self) -> dict[str, Any]:
        """At the rate of the step after which a client is scored."""
        return super().alone() | {"eta": self.alpha or self.eta}

    @property
    def batches_per_step(self) -> int:
        return 2 if self.order == "FO" else 3

    @property
    def elementwise(self) -> bool:
        return self.order == "FO"  # the length of v is one number for all of a model's tensors

    def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
        w = carry["model"]
        v = f.grad(tree.added(w, f.grad(w, batches[0]), -self.alpha), batches[1])
        if self.order == "HF":
            v = tree.added(v, self.hessian_times(v, w, batches[2], f), -self.alpha)
        return {"model": tree.added(w, v, -rate)}

    def hessian_times(self, v: Model, w: Model, batch: Batch, f: Objective) -> Model:
        """The Hessian at w times v, by a central difference along v."""
        length = torch.sqrt(sum((value * value).sum() for value in v.values()))  # type: ignore[arg-type]
        e = 0.01 / length.clamp(min=NOTHING)
        ahead = f.grad(tree.mapped(lambda x, y: x + e * y, w, v), batch)
        behind = f.grad(tree.mapped(lambda x, y: x - e * y, w, v), batch)
        return tree.mapped(lambda a, b: torch.where(length < NOTHING, 0.0, (a - b) / (2 * e)), ahead, behind)

    def personal_model(self, sent: Message | None, mine: Message, batch: Batch, f: Objective) -> Model:
        w = sent["model"] if sent and "model" in sent else mine["model"]
        return tree.added(w, f.grad(w, batch), -self.alpha)
