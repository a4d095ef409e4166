"""The products of a step and nothing else: what is left of its time if all other work were free.

One step of one client is played with PyTorch, and its products of matrices are noted. They are then done again for
many clients at once, with the same shapes, on other numbers. Convolutions can be done in many ways, of which PyTorch's
is not the fastest for many clients: where there are any, only the number of multiply-adds is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode
from workloads import Row

aten = torch.ops.aten
MATRICES = (aten.mm.default, aten.addmm.default)
Matrices = tuple[Tensor, Tensor]


class Note(TorchDispatchMode):
    """Notes the products that are done in its `with` block."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[Matrices] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in MATRICES:
            self.noted.append(args[-2:])
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


def products(row: Row, clients: int) -> Callable[[], None] | None:
    """Return what does the products of all steps of so many clients; None where there are convolutions."""
    if any(isinstance(layer, nn.Conv2d) for layer in row.module.modules()):
        return None
    with Note() as notes:
        step(row)
    memory: dict[Any, Tensor] = {}  # products of one shape share their numbers, as the steps of an LSTM do its weights
    jobs = [job(pair, clients, memory) for pair in notes.noted]

    @torch.no_grad()
    def work() -> None:
        for _ in range(row.steps):
            for do in jobs:
                do()

    return work


def job(pair: Matrices, clients: int, memory: dict[Any, Tensor]) -> Callable[[], Any]:
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
