"""How values and slopes pass through the layers of a network, for m clients at once. `matching` makes four passes.

Vectors are (m, k, features): k samples of each of m clients. Images are (k, m, channels, height, width), because then
the channels of all clients stand side by side. Inputs of a layer with weights are called A, the gradient of the loss by
its outputs D, and G the target of D'A, the gradient of its weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Seen = Any  # what a layer's first pass leaves for the other passes
Pulls = Any  # what a layer's own |D'A - G|^2 adds in the last two passes; None of a layer without weights
ops: Any = torch.ops.aten


@dataclass(frozen=True)
class Layer:
    """One layer of all clients' networks. This one is nn.Identity, which hands on what it gets."""

    layer: Any

    def forward(self, x: Tensor) -> tuple[Tensor, Seen]:
        """The outputs, and what was seen."""
        return x, None

    def pulls(self, seen: Seen, d: Tensor) -> Pulls:
        """How |D'A - G|^2 pulls on D and on A, where d is D."""
        return None

    def along(self, seen: Seen, t: Tensor, pulls: Pulls) -> Tensor:
        """How the outputs change if the inputs change by t, and the pull on D."""
        return t

    def back(self, seen: Seen, d: Tensor, pulls: Pulls = None) -> Tensor:
        """The slope by the inputs that a slope d by the outputs makes, and the pull on A."""
        return d


class Flatten(Layer):
    """nn.Flatten."""

    def forward(self, x: Tensor) -> tuple[Tensor, Seen]:
        return swapped(x).flatten(2), swapped(x).shape

    def along(self, seen: Seen, t: Tensor, pulls: Pulls) -> Tensor:
        return swapped(t).flatten(2)

    def back(self, seen: Seen, d: Tensor, pulls: Pulls = None) -> Tensor:
        return swapped(d.reshape(seen))


def swapped(x: Tensor) -> Tensor:
    """Images with clients first, or samples first again; vectors stay as they are."""
    return x if x.dim() == 3 else x.transpose(0, 1)


class ReLU(Layer):
    """nn.ReLU, which lets pass what was positive."""

    def forward(self, x: Tensor) -> tuple[Tensor, Seen]:
        out = x.relu()
        return out, out

    def along(self, seen: Seen, t: Tensor, pulls: Pulls) -> Tensor:
        return self.back(seen, t)

    def back(self, seen: Seen, d: Tensor, pulls: Pulls = None) -> Tensor:
        found: Tensor = ops.threshold_backward(d, seen, 0)
        return found


class MaxPool(Layer):
    """nn.MaxPool2d, which picks some of its inputs."""

    def forward(self, x: Tensor) -> tuple[Tensor, Seen]:
        planes = x.flatten(0, 2)
        out, at = ops.max_pool2d_with_indices(planes, *self.settings)
        return unplaned(out, x), (planes, at)

    def along(self, seen: Seen, t: Tensor, pulls: Pulls) -> Tensor:
        _, at = seen
        picked = t.flatten(0, 2).flatten(1).gather(1, at.flatten(1))
        return unplaned(picked.view_as(at), t)

    def back(self, seen: Seen, d: Tensor, pulls: Pulls = None) -> Tensor:
        planes, at = seen
        return unplaned(ops.max_pool2d_with_indices_backward(d.flatten(0, 2), planes, *self.settings, at), d)

    @property
    def settings(self) -> tuple[Any, ...]:
        pool = self.layer
        return *map(pair, (pool.kernel_size, pool.stride, pool.padding, pool.dilation)), pool.ceil_mode


class AvgPool(Layer):
    """nn.AvgPool2d."""

    def forward(self, x: Tensor) -> tuple[Tensor, Seen]:
        planes = x.flatten(0, 2)
        return unplaned(self.layer(planes), x), planes

    def along(self, seen: Seen, t: Tensor, pulls: Pulls) -> Tensor:
        return self.forward(t)[0]

    def back(self, seen: Seen, d: Tensor, pulls: Pulls = None) -> Tensor:
        pool = self.layer
        sizes = map(pair, (pool.kernel_size, pool.stride, pool.padding))
        how = pool.ceil_mode, pool.count_include_pad, pool.divisor_override
        return unplaned(ops.avg_pool2d_backward(d.flatten(0, 2), seen, *sizes, *how), d)


def unplaned(planes: Tensor, like: Tensor) -> Tensor:
    """Planes one after another as those of k samples, m clients and c channels, as many as `like` has."""
    return planes.reshape(*like.shape[:3], *planes.shape[1:])


def pair(size: int | tuple[int, int]) -> tuple[int, int]:
    """The size in both directions."""
    return (size, size) if isinstance(size, int) else size


@dataclass(frozen=True)
class Weighted(Layer):
    """A layer with weights: its stacked weights and the targets of their gradients. Weights that are the same for all
    clients have stride 0 between clients."""

    weight: Tensor
    bias: Tensor
    target: Tensor
    bias_target: Tensor

    @property
    def shared(self) -> bool:
        return self.weight.stride(0) == 0


class Linear(Weighted):
    """nn.Linear on vectors."""

    def forward(self, x: Tensor) -> tuple[Tensor, Seen]:
        return self.added(self.bias[:, None].repeat(1, x.shape[1], 1), x, self.weight.mT), x

    def pulls(self, seen: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
        a, g, h = seen, self.target, self.bias_target[:, None]
        if a.shape[1] * sum(g.shape[1:]) < g[0].numel():  # few samples: form nothing as large as the weight
            on_d = torch.bmm(torch.bmm(a, a.mT).add_(1).mul_(2), d).sub_(h, alpha=2)  # the 1 is the bias's
            on_a = torch.bmm(torch.bmm(d, d.mT).mul_(2), a)
            return on_d.baddbmm_(a, g.mT, alpha=-2), on_a.baddbmm_(d, g, alpha=-2)
        gap, off = torch.baddbmm(g, d.mT, a, beta=-2, alpha=2), (d.sum(1, keepdim=True) - h).mul_(2)
        return torch.baddbmm(off, a, gap.mT), torch.bmm(d, gap)

    def along(self, seen: Tensor, t: Tensor | None, pulls: Pulls) -> Tensor:
        on_d: Tensor = pulls[0]
        return on_d if t is None else self.added(on_d, t, self.weight.mT)

    def back(self, seen: Tensor, d: Tensor, pulls: Pulls = None) -> Tensor:
        return self.added(d.new_zeros(seen.shape) if pulls is None else pulls[1], d, self.weight)

    def added(self, to: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        """to + x weight, in place: one product for all clients if they share the weight."""
        if not self.shared:
            return to.baddbmm_(x, weight)
        to.view(-1, to.shape[2]).addmm_(x.flatten(0, 1), weight[0])
        return to


class Conv(Weighted):
    """nn.Conv2d: one convolution for all samples if clients share the weight, else one with a group for each client."""

    def forward(self, x: Tensor) -> tuple[Tensor, Seen]:
        x = x.contiguous()
        return self.convolved(x, self.weight, self.bias), x

    def pulls(self, seen: Tensor, d: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        _, found, total = self.turned(d, seen, self.target, by_input=False)
        gap = found.reshape_as(self.target).sub_(self.target).mul_(2)
        return d, gap, total.reshape_as(self.bias_target).sub_(self.bias_target).mul_(2)

    def along(self, seen: Tensor, t: Tensor | None, pulls: Pulls) -> Tensor:
        _, gap, off = pulls
        on_d = self.convolved(seen, gap, off)
        return on_d if t is None else on_d.add_(self.convolved(t, self.weight))

    def back(self, seen: Tensor, d: Tensor, pulls: Pulls = None) -> Tensor:
        weight = self.weight
        if pulls is not None:  # two sums over output channels are one over twice as many, and one convolution
            first, gap, _ = pulls
            d, weight = torch.cat([first, d], 2), torch.cat([gap, weight], 1)
        return self.turned(d, seen, weight)[0].reshape(seen.shape)

    def convolved(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        conv = self.layer
        how: Any = {"stride": conv.stride, "padding": conv.padding, "dilation": conv.dilation}
        if all(value.stride(0) == 0 for value in (weight, bias) if value is not None):
            out = F.conv2d(x.flatten(0, 1), weight[0], None if bias is None else bias[0], **how)
        else:
            biases = None if bias is None else bias.flatten()
            out = F.conv2d(x.flatten(1, 2), weight.flatten(0, 1), biases, **how, groups=len(weight))
        return out.reshape(*x.shape[:2], -1, *out.shape[2:])

    def turned(self, d: Tensor, x: Tensor, weight: Tensor, by_input: bool = True) -> tuple[Tensor, Tensor, Tensor]:
        """The slopes by the inputs, or those by weight and bias, of what has the slopes d by the outputs."""
        conv, wanted = self.layer, (by_input, not by_input, not by_input)
        how: Any = conv.stride, conv.padding, conv.dilation, False, (0, 0)
        if by_input and weight.stride(0) == 0:
            given: Any = d.flatten(0, 1), x.flatten(0, 1), weight[0], (weight.shape[1],)
            groups = 1
        else:
            given = d.flatten(1, 2), x.flatten(1, 2), weight.flatten(0, 1), (weight.shape[1] * len(weight),)
            groups = len(weight)
        found: tuple[Tensor, Tensor, Tensor] = ops.convolution_backward(*given, *how, groups, wanted)
        return found
