"""Convolutions and pools of many clients, each with its own weights, forwards and backwards without autograd.

There are two ways, and which one is faster for a network is measured (engines/rehearsal.py). `Unfolded` makes one
batched product of each convolution of all clients. `Looped` lets oneDNN convolve for one client after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LAST = torch.channels_last


class Product(NamedTuple):
    """The gradient of a weight as two factors: left @ right, (m, out, L) @ (m, L, in)."""

    left: Tensor
    right: Tensor


class Convolved(NamedTuple):
    """What a convolution gives back for the gradient by its outputs: gradients of its weight, bias and inputs."""

    weight: Product | Tensor
    bias: Tensor
    inputs: Tensor | None


class Way(Protocol):
    """How images of many clients lie in memory, and what is done with them. `saved` is what the way back needs."""

    def enter(self, x: Tensor) -> Tensor:
        """Return the samples of all clients, (m, B, C, H, W), as images of this way."""
        ...

    def leave(self, x: Tensor, m: int) -> Tensor:
        """Return images as vectors, (m, B, C H W)."""
        ...

    def left(self, d: Tensor, x: Tensor) -> Tensor:
        """Return the gradient by vectors as the gradient by the images x."""
        ...

    def convolve(self, layer: nn.Conv2d, x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Any]:
        """Return the outputs of a convolution, and what the way back needs."""
        ...

    def convolve_back(self, layer: nn.Conv2d, d: Tensor, saved: Any, weight: Tensor, wanted: bool) -> Convolved:
        """Return the gradients; the one by the inputs only if it is wanted."""
        ...

    def pool(self, layer: nn.MaxPool2d, x: Tensor) -> tuple[Tensor, Any]:
        """Return the largest of each window, and what the way back needs."""
        ...

    def pool_back(self, layer: nn.MaxPool2d, d: Tensor, saved: Any) -> Tensor:
        """Return the gradient by the inputs of a pool."""
        ...


@dataclass(frozen=True)
class Unfolded:
    """Images are (m, C, H, W, B): with the batch innermost, unfolding copies long runs, and pools are vectorised."""

    def enter(self, x: Tensor) -> Tensor:
        return x.permute(0, 2, 3, 4, 1).contiguous()

    def leave(self, x: Tensor, m: int) -> Tensor:
        return x.flatten(1, 3).mT

    def left(self, d: Tensor, x: Tensor) -> Tensor:
        return d.mT.reshape(x.shape)

    def convolve(self, layer: nn.Conv2d, x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Any]:
        (p, q), kernel = pair(layer.padding), weight.shape[3:]
        x = F.pad(x, (0, 0, q, q, p, p)) if p or q else x
        m, channels, height, width, batch = x.shape
        (s, t), (e, f) = pair(layer.stride), pair(layer.dilation)
        rows, columns = (height - e * (kernel[0] - 1) - 1) // s + 1, (width - f * (kernel[1] - 1) - 1) // t + 1
        a, b, c, d, one = x.stride()
        windows = x.as_strided(
            (m, channels, *kernel, rows, columns, batch), (a, b, e * c, f * d, s * c, t * d, one)
        ).reshape(m, channels * kernel[0] * kernel[1], -1)  # (m, C k k, H' W' B)
        out = torch.baddbmm(bias[:, :, None], weight.flatten(2), windows)
        return out.view(m, -1, rows, columns, batch), (windows, x.shape)

    def convolve_back(self, layer: nn.Conv2d, d: Tensor, saved: Any, weight: Tensor, wanted: bool) -> Convolved:
        windows, shape = saved
        (m, out, rows, columns, batch), kernel = d.shape, weight.shape[3:]
        flat = d.reshape(m, out, -1)
        found = Product(flat, windows.mT), flat.sum(2)
        if not wanted:
            return Convolved(*found, None)
        (p, q), (s, t), (e, f) = pair(layer.padding), pair(layer.stride), pair(layer.dilation)
        back = torch.bmm(weight.flatten(2).mT, flat).view(m, -1, *kernel, rows, columns, batch)
        inputs = d.new_zeros(shape)
        for i in range(kernel[0]):
            for j in range(kernel[1]):
                high, wide = slice(e * i, e * i + s * rows, s), slice(f * j, f * j + t * columns, t)
                inputs[:, :, high, wide] += back[:, :, i, j]
        return Convolved(*found, inputs[:, :, p : shape[2] - p, q : shape[3] - q])

    def pool(self, layer: nn.MaxPool2d, x: Tensor) -> tuple[Tensor, Any]:
        m = len(x)
        last = x.flatten(0, 1).permute(0, 3, 1, 2)  # (m C, B, H, W), in which B takes the place of channels
        out, at = F.max_pool2d(last, *pool_settings(layer), return_indices=True)
        images: Tensor = out.permute(0, 2, 3, 1).unflatten(0, (m, -1))
        return images, (last, at)

    def pool_back(self, layer: nn.MaxPool2d, d: Tensor, saved: Any) -> Tensor:
        last, at = saved
        found = pooled_back(layer, d.flatten(0, 1).permute(0, 3, 1, 2), last, at)
        images: Tensor = found.permute(0, 2, 3, 1).unflatten(0, d.shape[:2])
        return images


@dataclass(frozen=True)
class Looped:
    """Images are (m B, C, H, W) with the channels innermost, as oneDNN and pools like them."""

    def enter(self, x: Tensor) -> Tensor:
        images = x.flatten(0, 1)
        if images.shape[1] > 1:
            return images.contiguous(memory_format=LAST)
        one, height, width = images.shape[1:]  # one channel lies either way, and strides say how outputs are to lie
        return images.contiguous().as_strided(images.shape, (height * width, one, width, one))

    def leave(self, x: Tensor, m: int) -> Tensor:
        vectors: Tensor = x.flatten(1).unflatten(0, (m, -1))
        return vectors

    def left(self, d: Tensor, x: Tensor) -> Tensor:
        return d.reshape(x.shape).contiguous(memory_format=LAST)

    def convolve(self, layer: nn.Conv2d, x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Any]:
        each = zip(x.chunk(len(weight)), weight.unbind(), bias.unbind(), strict=True)
        out = [F.conv2d(*one, layer.stride, layer.padding, layer.dilation) for one in each]
        return joined(out), x

    def convolve_back(self, layer: nn.Conv2d, d: Tensor, saved: Any, weight: Tensor, wanted: bool) -> Convolved:
        m = len(weight)
        settings: Any = (pair(layer.stride), pair(layer.padding), pair(layer.dilation), False, (0, 0), 1)
        back = torch.ops.aten.convolution_backward
        each = zip(d.chunk(m), saved.chunk(m), weight.unbind(), strict=True)
        found = [back(*one, (layer.out_channels,), *settings, (wanted, True, True)) for one in each]
        inputs = joined([one[0] for one in found]) if wanted else None
        return Convolved(torch.stack([one[1] for one in found]), torch.stack([one[2] for one in found]), inputs)

    def pool(self, layer: nn.MaxPool2d, x: Tensor) -> tuple[Tensor, Any]:
        out, at = F.max_pool2d(x, *pool_settings(layer), return_indices=True)
        return out, (x, at)

    def pool_back(self, layer: nn.MaxPool2d, d: Tensor, saved: Any) -> Tensor:
        return pooled_back(layer, d, *saved)


WAYS: dict[str, Way] = {"unfolded": Unfolded(), "looped": Looped()}


def joined(parts: list[Tensor]) -> Tensor:
    """Return the images of all clients as one tensor."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def pooled_back(layer: nn.MaxPool2d, d: Tensor, x: Tensor, at: Tensor) -> Tensor:
    """Return the gradient by the inputs x of a pool whose largest values were `at`."""
    kernel, stride, padding, dilation, ceil = pool_settings(layer)
    found: Tensor = torch.ops.aten.max_pool2d_with_indices_backward(
        d, x, pair(kernel), pair(stride), pair(padding), pair(dilation), ceil, at
    )
    return found


def pool_settings(layer: nn.MaxPool2d) -> tuple[Any, ...]:
    """Return the settings of a pool in the order in which torch takes them."""
    return layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.ceil_mode


def pair(value: Any) -> tuple[int, int]:
    """Return a setting for height and width."""
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))
