"""Each selected client is sent the mean of the models that the selected clients hold: FedMCSA without attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedkin.collaborate.mixing import Mixing, Weights
from fedkin.contract import Gives
from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.errors import require
from fedkin.messages import Sent, Slot, Task


@dataclass(frozen=True)
class MeanBefore(Mixing):
    """W_i = sum_k n_k theta_k / sum_k n_k over the selected clients k, the same for each of them (without the n_k if
    `weights_by="uniform"`). The common model is the mean that was sent last, before training."""

    weights_by: Literal["size", "uniform"] = (
        "size"  # whether a model counts by its client's number of samples, or all alike
    )

    @property
    def gives(self) -> Gives:
        return Gives(common_model=True, own_model=True)

    def similarities(self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None) -> Weights:
        require(self.weights_by == "uniform" or sizes is not None, "A mean by size needs the clients' sizes.")
        share = kept if self.weights_by == "uniform" or sizes is None else kept * sizes.double().to(kept.device)
        if not share.sum() > 0:  # no source is left, so each client keeps its own model
            return Weights({"model": torch.eye(len(share), dtype=torch.float64, device=share.device)})
        return Weights({"model": (share / share.sum()).expand(len(share), -1)})

    def init(self, task: Task) -> Slot:
        return super().init(task) | {"model": task.model}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        sent, slot = super().send(slot, task, ids, current)
        mixed = sent.own["model"]
        good = tree.finite(mixed).nonzero().reshape(-1)  # a client with a broken model keeps it; any other has the mean
        return sent, slot | ({"model": tree.row(mixed, int(good[0]))} if len(good) else {})

    def model(self, slot: Slot) -> Model:
        model: Model = slot["model"]
        return model
