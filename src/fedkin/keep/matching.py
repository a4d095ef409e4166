"""The slopes of J in closed form, for all clients at once, where the network is a sequence of common layers.

J = sum_l |D'A - G|^2 over the layers that have weights: A are the inputs of a layer, D is the gradient of the loss by
its outputs, and so D'A is the gradient by its weight. The dummies change J through A and through D. Four passes give
the slopes of J by the dummies, without a graph to differentiate (docs/papers/pfedre.md has the equations):

    forward  A of each layer
    back     D of each layer
    along    the slope of J by each D: the layer's own, and what comes from the layer before it
    back     the slope of J by each A: the layer's own, and what comes from the layer behind it

The second derivative of the loss stands between the last two. ReLU and pools have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import torch.nn.functional as F
from torch import Tensor, nn

from fedkin.core.tree import Model
from fedkin.keep.passes import AvgPool, Conv, Flatten, Layer, Linear, MaxPool, ReLU, Weighted, swapped
from fedkin.messages import Layers

KINDS: dict[type[nn.Module], type[Layer]] = {
    nn.Identity: Layer,
    nn.Flatten: Flatten,
    nn.ReLU: ReLU,
    nn.MaxPool2d: MaxPool,
    nn.AvgPool2d: AvgPool,
    nn.Linear: Linear,
    nn.Conv2d: Conv,
}
AXES: dict[type[nn.Module], int] = {nn.MaxPool2d: 3, nn.AvgPool2d: 3, nn.Linear: 1, nn.Conv2d: 3}  # of a sample


def fits(layers: Layers | None, shape: Sequence[int]) -> TypeGuard[Layers]:
    """Whether the slopes of a network of these layers are known here. `shape` is that of one sample."""
    if layers is None:
        return False
    axes = len(shape)
    for _, layer in layers:
        kind = type(layer)
        if kind not in KINDS or AXES.get(kind, axes) != axes:
            return False
        if getattr(layer, "bias", True) is None or getattr(layer, "groups", 1) != 1:
            return False
        axes = 1 if kind is nn.Flatten else axes
    return True


def made(layers: Layers, model: Model, target: Model) -> list[Layer]:
    """The layers with the stacked weights of a model and the targets of their gradients."""

    def weights(name: str) -> list[Tensor]:
        keys = [f"{name}.weight", f"{name}.bias"]
        return [each[key] for each in (model, target) for key in keys if key in each]

    return [KINDS[type(layer)](layer, *weights(name)) for name, layer in layers]


def slopes(layers: list[Layer], x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The slopes of every client's J by its dummies x and by their labels.

    y: the samples' classes, or a share of each class for every sample.
    """  # (m, k, ...), (m, k, classes)
    seen: list[Any] = []
    x = swapped(x)
    for layer in layers:
        x, kept = layer.forward(x)
        seen.append(kept)
    p, k = x.softmax(-1), x.shape[1]
    d = (p - (y if y.is_floating_point() else F.one_hot(y, p.shape[-1]))) / k
    first = next(i for i, layer in enumerate(layers) if isinstance(layer, Weighted))
    behind, pulls = range(first, len(layers)), [None] * len(layers)
    for i in reversed(behind):
        pulls[i] = layers[i].pulls(seen[i], d)
        d = layers[i].back(seen[i], d) if i > first else d
    t: Any = None  # the dummies themselves have no D
    for i in behind:
        t = layers[i].along(seen[i], t, pulls[i])
    t = t / k
    a = through_softmax(p, t)
    for i in reversed(range(len(layers))):
        a = layers[i].back(seen[i], a, pulls[i])
    return swapped(a), -t


def through_softmax(p: Tensor, slope: Tensor) -> Tensor:
    """The slope by the numbers whose softmax is p, of what has this slope by p."""
    return p * (slope - (p * slope).sum(-1, keepdim=True))
