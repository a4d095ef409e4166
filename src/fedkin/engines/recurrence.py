"""Layers of our LSTM for many clients, each with its own weights, forwards and backwards without autograd.

There are two ways. `Looped` lets oneDNN run a layer for one client after another. `Batched` makes one product of all
clients at each time; it takes two to three times as long (docs/decisions/0026-lstm.md), but needs no oneDNN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from fedkin.engines.convolution import Product

KEPT = 2**25 - 2**16  # bytes: a little less than the largest block by which glibc raises its limits
SHUT = -1e9  # what padding adds to an input gate, whose sigmoid is then zero
ONE_LSTM: dict[str, Any] = {  # what oneDNN is asked for: one layer forwards in time, all samples equally long
    "mode": 2,  # an LSTM
    "num_layers": 1,
    "has_biases": True,
    "reverse": False,
    "bidirectional": False,
    "batch_first": False,
    "batch_sizes": [],
}


class Layer(NamedTuple):
    """The parameters of one layer of each client; see `models.recurrent.Recurrence`."""

    weight: Tensor  # (m, 4 hidden, into)
    recurrent: Tensor  # (m, 4 hidden, hidden)
    bias: Tensor  # (m, 4 hidden)


class Slopes(NamedTuple):
    """What a layer gives back for the gradient by its states: the gradients of its parameters and of its inputs."""

    weight: Product | Tensor
    recurrent: Product | Tensor
    bias: Tensor
    inputs: Tensor  # (m, T, B, into)


Back = Callable[[Tensor], Slopes]


class Way(Protocol):
    """How a layer is run."""

    together: bool  # whether all clients of a chunk are run at once, else they come one by one

    def run(self, layer: Layer, x: Tensor, begun: Tensor | None) -> tuple[Tensor, Back]:
        """Return the states, (m, T, B, hidden), and the way back; `begun` is that of `Recurrence.forward`."""
        ...

    def states(self, layer: Layer, x: Tensor, begun: Tensor | None) -> Tensor:
        """Return the states alone."""
        ...


def way(like: Tensor) -> Way:
    """Return the faster way of those that can run a layer with such parameters."""
    if like.device.type != "cpu" or like.dtype != torch.float32 or not torch.backends.mkldnn.is_available():
        return Batched()
    keep_freed_memory()
    return Looped()


def keep_freed_memory() -> None:
    """Let the C library keep up to 64 MB of freed memory, so that the next step need not ask the system for it.

    Each step of an LSTM frees some 30 MB. glibc returns freed memory to the system beyond twice the largest block that
    was freed before, and the system then hands out each page anew, which took a third of a step's time.
    """
    torch.empty(KEPT, dtype=torch.uint8)


@dataclass(frozen=True)
class Batched:
    """One product of all clients at each time. The gradient of a weight is one product over all times and samples."""

    together = True

    def run(self, layer: Layer, x: Tensor, begun: Tensor | None) -> tuple[Tensor, Back]:
        (m, times, batch, _), hidden = x.shape, layer.recurrent.shape[2]
        gates = torch.baddbmm(layer.bias[:, None], x.flatten(1, 2), layer.weight.mT).view(m, times, batch, -1)
        if begun is not None:
            gates.mul_(begun)
        h, c = x.new_zeros(2, m, times + 1, batch, hidden)  # each begins with the state before the first token
        tanh_c = torch.empty_like(h[:, 1:])
        recurrent = layer.recurrent.mT
        for t in range(times):
            now = gates[:, t].baddbmm_(h[:, t], recurrent)
            now[..., : 3 * hidden].sigmoid_()
            now[..., 3 * hidden :].tanh_()
            i, f, o, g = now.chunk(4, dim=2)
            torch.mul(f, c[:, t], out=c[:, t + 1]).addcmul_(i, g)
            torch.tanh(c[:, t + 1], out=tanh_c[:, t])
            torch.mul(o, tanh_c[:, t], out=h[:, t + 1])

        def back(d: Tensor) -> Slopes:
            on_gates = self.through_time(layer.recurrent, gates, c, tanh_c, begun, d).flatten(1, 2)
            inputs = torch.bmm(on_gates, layer.weight).view(x.shape)
            left = on_gates.mT
            weight, own = Product(left, x.flatten(1, 2)), Product(left, h[:, :-1].flatten(1, 2))
            return Slopes(weight, own, on_gates.sum(1), inputs)

        return h[:, 1:], back

    def states(self, layer: Layer, x: Tensor, begun: Tensor | None) -> Tensor:
        return self.run(layer, x, begun)[0]

    def through_time(
        self, recurrent: Tensor, gates: Tensor, c: Tensor, tanh_c: Tensor, begun: Tensor | None, d: Tensor
    ) -> Tensor:
        """Return the gradient by what enters the gates, for the gradient d by the states."""  # (m, T, B, 4 hidden)
        i, f, o, g = gates.chunk(4, dim=3)
        hidden = i.shape[3]
        # first how each gate changes c (the output gate: h) at its own time, for all times at once
        found = torch.cat([g, c[:, :-1], tanh_c, i], dim=3)
        sigmoids, last = found.split([3 * hidden, hidden], dim=3)
        sigmoids.copy_(torch.ops.aten.sigmoid_backward(sigmoids, gates[..., : 3 * hidden]))
        last.copy_(torch.ops.aten.tanh_backward(last, g))
        if begun is not None:
            found.mul_(begun)
        c_by_h = torch.ops.aten.tanh_backward(o, tanh_c)
        # then the times, last to first
        each = found.unflatten(3, (4, hidden))
        by_h, by_c = d[:, -1], torch.zeros_like(d[:, -1])
        for t in range(gates.shape[1] - 1, -1, -1):
            by_c.addcmul_(by_h, c_by_h[:, t])
            each[:, t, :, :2].mul_(by_c[:, :, None])
            each[:, t, :, 2].mul_(by_h)
            each[:, t, :, 3].mul_(by_c)
            if t:
                by_h = torch.baddbmm(d[:, t - 1], found[:, t], recurrent)
                by_c.mul_(f[:, t])
        return found


@dataclass(frozen=True)
class Looped:
    """oneDNN's LSTM, for one client. It has its gates in another order, two biases, and no padding."""

    together = False

    def run(self, layer: Layer, x: Tensor, begun: Tensor | None) -> tuple[Tensor, Back]:
        given, asked = self.given(layer, x, begun), {"hidden_size": layer.recurrent.shape[2], **ONE_LSTM}
        with torch.enable_grad():  # else oneDNN saves nothing for the way back
            h, *last, saved = torch.ops.aten.mkldnn_rnn_layer(*given, **asked, train=True)

        def back(d: Tensor) -> Slopes:
            at_end = torch.zeros_like(last[0])
            inputs, *found = torch.ops.aten.mkldnn_rnn_layer_backward(
                *given, h, *last, d[0], at_end, at_end, **asked, train=True, workspace=saved
            )[:4]
            into = x.shape[3]
            weight, recurrent, bias = (swapped(value)[None] for value in found)
            return Slopes(weight[..., :into], recurrent, bias, inputs[None, ..., :into])

        return h[None], back

    def states(self, layer: Layer, x: Tensor, begun: Tensor | None) -> Tensor:
        asked = {"hidden_size": layer.recurrent.shape[2], **ONE_LSTM}
        h: Tensor = torch.ops.aten.mkldnn_rnn_layer(*self.given(layer, x, begun), **asked, train=False)[0]
        return h[None]

    def given(self, layer: Layer, x: Tensor, begun: Tensor | None) -> tuple[Tensor, ...]:
        """Return what oneDNN needs: the inputs (T, B, into), two weights, two biases, and the states at the start.

        Padding is one more input, which shuts the input gate, so that the state stays zero.
        """
        weight, recurrent, bias = (swapped(value[0]) for value in layer)
        entering, hidden = x[0].contiguous(), recurrent.shape[1]
        if begun is not None:
            shutting = torch.zeros_like(bias)
            shutting[:hidden] = SHUT
            weight = torch.cat([weight, shutting[:, None]], dim=1)
            entering = torch.cat([entering, 1 - begun[0]], dim=2)
        start = x.new_zeros(x.shape[2], hidden)
        return entering, weight, recurrent, bias, torch.zeros_like(bias), start, start


def swapped(value: Tensor) -> Tensor:
    """Return the rows of gates (i, f, o, g) in the order (i, f, g, o), or back."""
    i, f, third, fourth = value.chunk(4)
    return torch.cat([i, f, fourth, third])
