"""FedMix's client (Yoon et al. 2021): mixup with the averages of other clients, to first order in these averages."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from fedkin.contract import Needs
from fedkin.core import losses
from fedkin.core.tree import Batch, Message, Model
from fedkin.errors import require
from fedkin.fields import BelowOne, Count
from fedkin.messages import Objective
from fedkin.train.sgd import SGD


@dataclass(frozen=True)
class FedMix(SGD):
    """loss = (1 - lam) CE(f(z), y) + lam CE(f(z), ybar) + lam (1 - lam) <grad_x CE(f(z), y), xbar>,  z = (1 - lam) x,

    with one (xbar, ybar) drawn from the pool for every batch. Before round 1 each client sends the mean inputs and the
    mean one-hot labels of groups of `group` samples (of all its samples if None); the pool holds those of all clients,
    and every client gets it. If `own` is false, a client draws only averages that others sent. With `naive` it is plain
    mixup with the average, the paper's NaiveMix:

    loss = (1 - lam) CE(f(z), y) + lam CE(f(z), ybar),  z = (1 - lam) x + lam xbar.
    """

    elementwise = False
    picks = "averages"

    lam: BelowOne = 0.05
    group: Count | None = None
    own: bool = True
    naive: bool = False

    @property
    def needs(self) -> Needs:
        return super().needs | Needs(classes=True)  # labels are averaged as shares of classes

    @property
    def picks_own(self) -> bool:
        return self.own

    def prepare(self, x: Tensor, y: Tensor, classes: int) -> Message:
        require(x.is_floating_point(), "FedMix averages samples, and words have no average; choose another method.")
        size = self.group or len(x)
        one_hot = F.one_hot(y, classes).to(x.dtype)
        means = [(a.mean(0), b.mean(0)) for a, b in zip(x.split(size), one_hot.split(size), strict=True)]
        return {"averages": {"x": torch.stack([a for a, _ in means]), "y": torch.stack([b for _, b in means])}}

    def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
        return super().step(carry, batches, Mixed(self, f), rate)

    def loss(self, model: Model, batch: Batch, f: Objective) -> Tensor:
        """The loss of the equation above, on one batch and the average that was picked for it."""
        lam, rest = self.lam, {k: v for k, v in batch.items() if k != "x"}
        x, xbar, ybar = (1 - lam) * batch["x"], batch["picked x"], batch["picked y"]
        if self.naive:
            x, xbar = x + lam * xbar, torch.zeros_like(xbar)

        def right(z: Tensor) -> Tensor:
            return losses.mean(losses.each(f.logits(model, rest | {"x": z}), batch["y"]), batch)

        towards, plain = torch.func.grad_and_value(right)(x)  # the gradient of a mean, so that the sum below is a mean
        slope = (towards * xbar).sum()
        soft = losses.mean(-(ybar * torch.log_softmax(f.logits(model, rest | {"x": x}), -1)).sum(-1), batch)
        total: Tensor = (1 - lam) * plain + lam * soft + lam * (1 - lam) * slope
        return total


@dataclass(frozen=True)
class Mixed:
    """The objective that the steps of FedMix descend."""

    part: FedMix
    f: Objective

    def logits(self, model: Model, batch: Batch) -> Tensor:
        return self.f.logits(model, batch)

    def loss(self, model: Model, batch: Batch) -> Tensor:
        return self.part.loss(model, batch, self.f)

    def grad(self, model: Model, batch: Batch) -> Model:
        found: Model = torch.func.grad(self.loss)(model, batch)
        return found
