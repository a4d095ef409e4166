"""Networks of linear layers: logistic regression and multilayer perceptrons."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from torch import nn

from fedkin.models.shape import Shape


def mlr(shape: Shape, classes: int) -> nn.Module:
    """Multinomial logistic regression: one linear layer."""
    return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), classes))


def mlp(shape: Shape, classes: int, *hidden: int) -> nn.Module:
    """Linear layers with ReLU between them. mlp:200,200, the default, is AdaFL's network for MNIST."""
    layers: list[nn.Module] = [nn.Flatten()]
    for into, out in pairwise((prod(shape), *(hidden or (200, 200)))):
        layers += [nn.Linear(into, out), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear((hidden or (200, 200))[-1], classes))


def dnn(shape: Shape, classes: int, hidden: int | None = None) -> nn.Module:
    """One hidden ReLU layer. By default it has 20 units for vectors and 100 for images, as in FedMCSA."""
    return mlp(shape, classes, hidden or (20 if len(shape) == 1 else 100))
