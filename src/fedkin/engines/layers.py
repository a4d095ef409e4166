"""Runs a sequence of common layers for many clients at once, each with its own weights.

`torch.func.vmap` can run any module for many clients. The code here does the same for sequences of the layers it
supports, with less overhead, and it can choose the faster of two ways for a convolution. Other modules go through vmap.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedkin.core.tree import Model

SAMPLEWISE = (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.Identity, nn.GELU, nn.LeakyReLU, nn.ELU)
POOLS = (nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d)

Layers = list[tuple[str, nn.Module]]  # the name and the layer, in order


class KeyedDropout(nn.Module):
    """A dropout layer that gets its mask from outside, drawn from the client's stream. Without one it does nothing."""

    mask: Tensor

    def __init__(self, p: float):
        super().__init__()
        self.p = p
        self.register_buffer("mask", torch.ones(()), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.mask


def supported_layers(module: nn.Module, trained: set[str]) -> Layers | None:
    """The layers of a sequence, in order and without nesting, or None if the code here cannot run the module.

    It cannot if the module is no nn.Sequential, uses a layer twice, has a layer that is not supported, or has other
    parameters than those named in `trained`.
    """
    everything = list(module.named_modules(remove_duplicate=False))
    inner = [(name, layer) for name, layer in everything if type(layer) is not nn.Sequential]
    repeats = len({id(layer) for _, layer in inner}) != len(inner)
    frozen = {name for name, _ in module.named_parameters()} != trained
    if type(module) is not nn.Sequential or repeats or frozen or not all(is_supported(layer) for _, layer in inner):
        return None
    return inner


def is_supported(layer: nn.Module) -> bool:
    """Whether `forward` can run this layer with these settings."""
    if type(layer) is nn.Conv2d:
        return layer.padding_mode == "zeros" and layer.bias is not None and isinstance(layer.padding, tuple)
    if type(layer) is nn.Flatten:
        return layer.start_dim == 1 and layer.end_dim == -1
    if type(layer) is nn.Linear:
        return layer.bias is not None
    if type(layer) is nn.GroupNorm:
        return layer.affine
    return type(layer) in (KeyedDropout, *SAMPLEWISE, *POOLS)


def forward(layers: Layers, stacked: Model, x: Tensor, masks: dict[str, Tensor]) -> Tensor:
    """The outputs of each client's network for the client's samples.

    `masks` has the masks of the dropout layers, by the layer's name.
    """  # (m, B, ...) -> (m, B, classes)
    m = len(x)
    for name, layer in layers:
        if isinstance(layer, nn.Linear):
            x = linear(x, stacked[f"{name}.weight"], stacked[f"{name}.bias"])
        elif isinstance(layer, nn.Conv2d):
            x = convolution(layer, x, stacked[f"{name}.weight"], stacked[f"{name}.bias"])
        elif isinstance(layer, nn.GroupNorm):
            x = group_norm(layer, x, stacked[f"{name}.weight"], stacked[f"{name}.bias"])
        elif isinstance(layer, nn.Flatten):
            x = x.flatten(2)
        elif isinstance(layer, SAMPLEWISE):
            x = layer(x)
        elif isinstance(layer, POOLS):
            x = layer(x.flatten(0, 1)).unflatten(0, (m, -1))
        elif name in masks:
            x = x * masks[name]
    return x


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Each client's linear layer."""
    if len(x) == 1:
        # squeeze, since the backward pass of indexing is slower
        return F.linear(x.squeeze(0), weight.squeeze(0), bias.squeeze(0))[None]
    if x.dim() == 3:
        return torch.baddbmm(bias[:, None], x, weight.mT)
    return torch.einsum("m...i,moi->m...o", x, weight) + bias.reshape(len(x), *(1,) * (x.dim() - 2), -1)


def convolution(layer: nn.Conv2d, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Each client's convolution: one grouped convolution for all clients, or one convolution for each client.

    Measured on CPU, a grouped convolution was 1.6x faster for groups of 1 or a multiple of 8 channels, and separate
    convolutions were 1.3x faster for other numbers of channels.
    """
    m, batch = x.shape[:2]
    convolve: Any = partial(F.conv2d, stride=layer.stride, padding=layer.padding, dilation=layer.dilation)
    fits = layer.in_channels in (1, 8, 16) and layer.out_channels % 8 == 0 and layer.groups == 1
    if m > 1 and (fits or x.is_cuda):
        together = x.transpose(0, 1).reshape(batch, -1, *x.shape[3:])  # (B, m C, H, W)
        out: Tensor = convolve(together, weight.flatten(0, 1), bias.flatten(), groups=m * layer.groups)
        result: Tensor = out.unflatten(1, (m, -1)).transpose(0, 1)
        return result
    if m == 1:
        alone: Tensor = convolve(x.squeeze(0), weight.squeeze(0), bias.squeeze(0), groups=layer.groups)[None]
        return alone
    each = zip(x.unbind(), weight.unbind(), bias.unbind(), strict=True)
    return torch.stack([convolve(*client, groups=layer.groups) for client in each])


def group_norm(layer: nn.GroupNorm, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Each client's group normalisation, computed as one: channels are joined, and no group mixes clients."""
    m, batch = x.shape[:2]
    together = x.transpose(0, 1).reshape(batch, -1, *x.shape[3:])  # (B, m C, H, W)
    out = F.group_norm(together, m * layer.num_groups, weight.flatten(), bias.flatten(), layer.eps)
    result: Tensor = out.unflatten(1, (m, -1)).transpose(0, 1)
    return result
