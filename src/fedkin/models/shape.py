"""What a network asks of the shape of a sample."""

from __future__ import annotations

import torch
from torch import nn

from fedkin.errors import require

Shape = tuple[int, ...]


def images(shape: Shape, name: str, least: int) -> None:
    require(
        len(shape) == 3 and min(shape[1:]) >= least,
        f"Model '{name}' takes images of at least {least}x{least} pixels, but a sample here has shape {shape}; "
        "use mlr, dnn or mlp.",
    )


def width(body: list[nn.Module], shape: Shape) -> int:
    """How many numbers come out of these layers for one sample."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]):  # a dropout among them draws nothing from the stream
        return int(nn.Sequential(*body)(torch.zeros(1, *shape)).shape[1])
