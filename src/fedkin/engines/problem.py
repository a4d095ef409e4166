"""The network of a module on the samples of a federation, and what the server knows of the problem."""

from __future__ import annotations

import torch
from torch import nn

from fedkin.data.federation import Federation
from fedkin.engines.network import Network
from fedkin.messages import Task
from fedkin.parts import Train


def network_of(
    federation: Federation, module: nn.Module, train: Train, dtype: torch.dtype, device: torch.device
) -> Network:
    """Return the network of a module on the samples of a federation; refuses a module that does not fit."""
    x = federation.x[0]
    sample = x.to(device, dtype if x.is_floating_point() else x.dtype)
    batch = min(train.batch, max(1, len(federation.train.rows)))  # no batch is larger, and it is tried out
    return Network(module, sample, batch, dtype, federation.classes)


def task_of(federation: Federation, network: Network, rounds: int, seed: int) -> Task:
    """Return what the server knows of the problem."""
    validation = None
    if federation.server is not None:
        like = next(iter(network.model.values()))
        x, y = federation.x[federation.server], federation.y[federation.server]
        x = x.to(like.device, like.dtype if x.is_floating_point() else x.dtype)
        validation = {"x": x, "y": y.to(like.device, like.dtype if y.is_floating_point() else y.dtype)}
    return Task(
        federation.n,
        federation.train.sizes,
        rounds,
        network.model,
        network.loss,
        validation,
        network.logits,
        federation.classes,
        network.differentiable(federation.shape),
        seed=seed,
        layers=network.layers,
    )
