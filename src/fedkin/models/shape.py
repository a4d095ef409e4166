"""Shapes of samples: what a network requires of them, and what its layers make of them."""

from __future__ import annotations

import torch
from torch import nn

from fedkin.errors import require

Shape = tuple[int, ...]


def require_images(shape: Shape, name: str, least: int) -> None:
    """Refuse samples that are not images of at least `least` by `least` pixels. `name` is the model's name."""
    require(
        len(shape) == 3 and min(shape[1:]) >= least,
        f"Model '{name}' takes images of at least {least}x{least} pixels, but a sample here has shape {shape}; "
        "use mlr, dnn or mlp.",
    )


def flat_width(body: list[nn.Module], shape: Shape) -> int:
    """The number of values that these layers give for one sample."""
    # fork_rng: a dropout layer must not draw from the stream that initialises the model
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        return int(nn.Sequential(*body)(torch.zeros(1, *shape)).shape[1])
