"""Convolutional networks without branches: LeNet-5, two small networks and VGG11."""

from __future__ import annotations

from math import gcd

from torch import nn

from fedkin.errors import require
from fedkin.models.shape import Shape, flat_width, require_images

VGG11 = ((1,), (2,), (4, 4), (8, 8), (8, 8))  # channels of its convolutions divided by 64; each group ends with a pool


def lenet(shape: Shape, classes: int) -> nn.Module:
    """LeNet-5: two 5x5 convolutions of 6 and 16 channels, then 120 and 84 units."""
    require_images(shape, "lenet", 16)
    pad = 2 if shape[-1] < 32 else 0
    body = [nn.Conv2d(shape[0], 6, 5, padding=pad), nn.ReLU(), nn.MaxPool2d(2)]
    body += [nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    head = [nn.Linear(flat_width(body, shape), 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, classes)]
    return nn.Sequential(*body, *head)


def cnn(shape: Shape, classes: int, kind: str = "small") -> nn.Module:
    """`cnn` has two 5x5 convolutions of 8 and 16 channels, then 64 units. `cnn:fedmix` is FedMix's reduced VGG."""
    if kind == "small":
        require_images(shape, "cnn", 16)
        body = [nn.Conv2d(shape[0], 8, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 5), nn.ReLU(), nn.MaxPool2d(2)]
        body += [nn.Flatten()]
        return nn.Sequential(*body, nn.Linear(flat_width(body, shape), 64), nn.ReLU(), nn.Linear(64, classes))
    require(kind == "fedmix", f"The cnn comes as 'cnn' or 'cnn:fedmix', not 'cnn:{kind}'.")
    require_images(shape, "cnn:fedmix", 8)

    def block(into: int, middle: int, out: int, dropout: bool) -> list[nn.Module]:
        first = [nn.Conv2d(into, middle, 3, padding=1), nn.ReLU(), nn.Conv2d(middle, out, 3, padding=1), nn.ReLU()]
        return [*first, nn.MaxPool2d(2), *([nn.Dropout(0.1)] if dropout else [])]

    vgg = [*block(shape[0], 32, 64, False), *block(64, 128, 128, True), *block(128, 256, 256, True), nn.Flatten()]
    head = [nn.Linear(flat_width(vgg, shape), 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.1)]
    return nn.Sequential(*vgg, *head, nn.Linear(512, classes))


def vgg11(shape: Shape, classes: int, base: int = 64) -> nn.Module:
    """VGG11's eight 3x3 convolutions, each with group normalisation and ReLU, then one linear layer.

    `base` is the number of channels of the first convolution, and the others are in proportion: vgg11:8 has an eighth
    of VGG11's channels. The five pools round up, so that 28x28 pixels become one pixel, as 32x32 pixels do
    (28, 14, 7, 4, 2, 1). Of a larger image several pixels are left, and they are averaged.
    """
    require_images(shape, "vgg11", 8)
    body: list[nn.Module] = []
    into = shape[0]
    for group in VGG11:
        for times in group:
            body += [nn.Conv2d(into, base * times, 3, padding=1), group_norm(base * times), nn.ReLU()]
            into = base * times
        body.append(nn.MaxPool2d(2, ceil_mode=True))
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, classes))


def group_norm(channels: int) -> nn.GroupNorm:
    """Group normalisation with as many groups as possible, a power of two up to 32, each of a multiple of 4 channels.

    If no such number of groups exists, there is one group.
    """
    return nn.GroupNorm(max(1, gcd(128, channels) // 4), channels)
