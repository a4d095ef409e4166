"""Runs a function of one client for many: by vmap, or, where a module does not let it, one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import vmap

from fedkin.core import tree
from fedkin.core.tree import Batch, Model

Logits = Callable[[Model, Batch], Tensor]


def looped(f: Logits) -> Logits:
    """Return the function that calls `f` for one client after another and stacks what it returns."""

    def each(stacked: Model, batch: Batch) -> Tensor:
        return torch.stack([f(tree.row(stacked, i), tree.row(batch, i)) for i in range(len(batch["x"]))])

    return each


def unlifted(module: nn.Module, logits: Logits, model: Model, sample: Tensor) -> str | None:
    """Return the layer of a module that vmap cannot run or differentiate, in words; None where it can do both."""
    inside: list[str] = []

    def entered(layer: nn.Module, given: Any, words: str) -> None:
        inside.append(words)

    def left(layer: nn.Module, given: Any, found: Any) -> None:
        inside.pop()

    hooks = []
    for name, layer in module.named_modules():
        words = f"Layer '{name}' ({type(layer).__name__})" if name else f"The model ({type(layer).__name__})"
        hooks.append(layer.register_forward_pre_hook(lambda layer, given, words=words: entered(layer, given, words)))
        hooks.append(layer.register_forward_hook(left))
    stacked = tree.mapped(lambda value: torch.stack([value, value]).requires_grad_(), model)
    try:
        with torch.enable_grad():
            out = vmap(logits)(stacked, {"x": sample.expand(2, 2, *sample.shape).clone()})
            torch.autograd.grad(out.sum(), list(stacked.values()), allow_unused=True)
    except Exception:  # it ran for one client, so whatever this is, vmap is the reason
        return inside[-1] if inside else f"The model ({type(module).__name__})"
    finally:
        for hook in hooks:
            hook.remove()
    return None
