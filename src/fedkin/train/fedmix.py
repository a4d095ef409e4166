"""FedMix's client (Yoon et al. 2021): mixup with other clients' averages, to first order in the averages."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from fedkin.core.tree import Batch, Message, Model
from fedkin.errors import require
from fedkin.parts import Objective
from fedkin.train.sgd import SGD


@dataclass(frozen=True)
class FedMix(SGD):
    """loss = (1 - lam) CE(f(z), y) + lam CE(f(z), ybar) + lam (1 - lam) <grad_x CE(f(z), y), xbar>,  z = (1 - lam) x,

    with one (xbar, ybar) drawn from the pool for every batch. Before round 1 each client sends the mean input and the
    mean one-hot label of its samples, in groups of `group` (all at once if None), and everybody gets the pool. With
    `own` false a client draws only what others sent. `naive` is plain mixup with the average, the paper's NaiveMix:

    loss = (1 - lam) CE(f(z), y) + lam CE(f(z), ybar),  z = (1 - lam) x + lam xbar.
    """

    elementwise = False
    picks = "averages"

    lam: float = 0.05
    group: int | None = None
    own: bool = True
    naive: bool = False

    @property
    def picks_own(self) -> bool:  # type: ignore[override]
        return self.own

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.lam < 1, f"train.lam must be at least 0 and below 1, not {self.lam}.")
        require(self.group is None or self.group >= 1, f"train.group must be at least 1, not {self.group}.")

    def prepare(self, x: Tensor, y: Tensor, classes: int) -> Message:
        require(x.is_floating_point(), "FedMix averages samples, and words have no average; choose another method.")
        size = self.group or len(x)
        one_hot = F.one_hot(y, classes).to(x.dtype)
        means = [(a.mean(0), b.mean(0)) for a, b in zip(x.split(size), one_hot.split(size), strict=True)]
        return {"averages": {"x": torch.stack([a for a, _ in means]), "y": torch.stack([b for _, b in means])}}

    def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
        return super().step(carry, batches, Mixed(self, f), rate)

    def loss(self, model: Model, batch: Batch, f: Objective) -> Tensor:
        lam, rest = self.lam, {k: v for k, v in batch.items() if k != "x"}
        x, xbar, ybar = (1 - lam) * batch["x"], batch["picked x"], batch["picked y"]
        if self.naive:
            x, xbar = x + lam * xbar, torch.zeros_like(xbar)

        def right(z: Tensor) -> Tensor:
            return mean(F.cross_entropy(f.logits(model, rest | {"x": z}), batch["y"], reduction="none"), batch)

        towards, plain = torch.func.grad_and_value(right)(x)  # of the mean over the batch, so summed below it is a mean
        slope = (towards * xbar).sum()
        soft = mean(-(ybar * torch.log_softmax(f.logits(model, rest | {"x": x}), -1)).sum(-1), batch)
        total: Tensor = (1 - lam) * plain + lam * soft + lam * (1 - lam) * slope
        return total


@dataclass(frozen=True)
class Mixed:
    """The objective FedMix's steps descend."""

    part: FedMix
    f: Objective

    def logits(self, model: Model, batch: Batch) -> Tensor:
        return self.f.logits(model, batch)

    def loss(self, model: Model, batch: Batch) -> Tensor:
        return self.part.loss(model, batch, self.f)

    def grad(self, model: Model, batch: Batch) -> Model:
        found: Model = torch.func.grad(self.loss)(model, batch)
        return found


def mean(each: Tensor, batch: Batch) -> Tensor:
    return each.mean() if "weight" not in batch else (each * batch["weight"]).sum() / batch["weight"].sum()
