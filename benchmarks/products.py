"""The products of a step and nothing else: what is left of its time if all other work were free.

One step of one client is played with PyTorch, and its products of matrices and its convolutions, there and back, are
noted. They are then done again with the same shapes, on other numbers: the products for many clients at once, the
convolutions by oneDNN for one client after another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode
from workloads import Row

aten = torch.ops.aten
MATRICES = (aten.mm.default, aten.addmm.default)
CONVOLUTIONS = (aten.convolution.default, aten.convolution_backward.default)
Noted = tuple[Any, tuple[Any, ...]]  # an operation and what it was given


class Note(TorchDispatchMode):
    """Notes the products and the convolutions that are done in its `with` block."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[Noted] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (*MATRICES, *CONVOLUTIONS):
            self.noted.append((func, args))
        return func(*args, **(kwargs or {}))


def step(row: Row) -> None:
    """Play one step of one client with PyTorch, there and back."""
    x, y = row.federation.x[: row.batch], row.federation.y[: row.batch]
    F.cross_entropy(row.module(x), y).backward()
    row.module.zero_grad()


def multiply_adds(row: Row) -> int:
    """Return how many multiplications and additions the products of one step of one client have.

    The gradient by the samples, which nobody needs, is not among them.
    """
    with FlopCounterMode(display=False) as counter:
        step(row)
    return counter.get_total_flops() // 2


def products(row: Row, clients: int) -> Callable[[], None]:
    """Return what does the products and convolutions of all steps of so many clients."""
    with Note() as notes:
        step(row)
    memory: dict[Any, Tensor] = {}  # products of one shape share their numbers, as the steps of an LSTM do its weights
    jobs = [
        job(args[-2:], clients, memory) if func in MATRICES else convolutions(func, args, clients)
        for func, args in notes.noted
    ]

    @torch.no_grad()
    def work() -> None:
        for _ in range(row.steps):
            for do in jobs:
                do()

    return work


def convolutions(func: Any, given: tuple[Any, ...], clients: int) -> Callable[[], Any]:
    """Return what does one convolution, or its way back, for one client after another."""
    each = [tuple(other(value) for value in given) for _ in range(clients)]
    return lambda: [func(*one) for one in each]


def other(value: Any) -> Any:
    """Return other numbers in place of a tensor; images have their channels innermost, as oneDNN likes them."""
    if not isinstance(value, Tensor):
        return value
    drawn = torch.randn(value.shape)
    return drawn.contiguous(memory_format=torch.channels_last) if value.dim() == 4 else drawn


def job(pair: tuple[Tensor, Tensor], clients: int, memory: dict[Any, Tensor]) -> Callable[[], Any]:
    """Return what does one product for all clients."""
    left, right = (stacked(value, clients, at, memory) for at, value in enumerate(pair))
    out = stacked(torch.empty(left.shape[-2], right.shape[-1]), clients, 2, memory)
    return lambda: torch.bmm(left, right, out=out)


def stacked(value: Tensor, clients: int, place: int, memory: dict[Any, Tensor]) -> Tensor:
    """Return a matrix of other numbers for each client, that lies in memory as this one does."""
    key = (place, value.shape, value.stride())
    if key not in memory:
        turned = value.stride(0) == 1 and value.shape[0] > 1
        n, k = value.shape
        memory[key] = torch.randn(clients, k, n).mT if turned else torch.randn(clients, n, k)
    return memory[key]
