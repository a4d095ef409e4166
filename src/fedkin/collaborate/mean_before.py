"""The weighted mean of what the selected clients hold now, sent to each of them: FedMCSA without its attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedkin.collaborate.mixing import Mixing
from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.parts import Sent, Slot, Task


@dataclass(frozen=True)
class MeanBefore(Mixing):
    """W_i = WAVG(S_t, n_i) for every i in S_t. The common model is the mean that was sent last, before any training."""

    weights_by: Literal["size", "uniform"] = "size"

    def __post_init__(self) -> None:
        known = self.weights_by in ("size", "uniform")
        require(known, f"collaborate.weights_by is 'size' or 'uniform', not '{self.weights_by}'.")

    def similarities(
        self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None
    ) -> dict[str, Tensor]:
        require(self.weights_by == "uniform" or sizes is not None, "A mean by size needs the clients' sizes.")
        share = kept if self.weights_by == "uniform" or sizes is None else kept * sizes.double().to(kept.device)
        if not share.sum() > 0:  # nobody left: each keeps its own
            return {"model": torch.eye(len(share), dtype=torch.float64, device=share.device)}
        return {"model": (share / share.sum()).expand(len(share), -1)}

    def init(self, task: Task) -> Slot:
        return super().init(task) | {"model": task.model}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        sent, slot = super().send(slot, task, ids, current)
        mixed = sent.own["model"]
        good = tree.finite(mixed).nonzero().reshape(-1)  # a broken client keeps its own; any other has the mean
        return sent, slot | ({"model": tree.row(mixed, int(good[0]))} if len(good) else {})

    def model(self, slot: Slot) -> Model:
        model: Model = slot["model"]
        return model
