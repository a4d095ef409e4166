"""Functions of models, which are dictionaries of tensors, and of stacked models.

A stacked model holds the models of many clients: its tensors have one more axis, the first, with a row for each client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

COLUMNS = 2**14  # of a stacked tensor that are summed at once
LARGEST = 1e12  # norm of a tensor that a client may keep or send

Model = dict[str, Tensor]  # parameter name -> tensor
Message = dict[str, Model]  # named models
Batch = dict[str, Tensor]  # "x", "y", and what else a loss needs


def mapped(f: Callable[..., Tensor], first: Model, *rest: Model) -> Model:
    """Apply `f` to the tensors that have the same name in all models, for each name."""
    return {name: f(value, *(other[name] for other in rest)) for name, value in first.items()}


def added(a: Model, b: Model, scale: float = 1.0) -> Model:
    """a + scale b."""
    return mapped(lambda x, y: torch.add(x, y, alpha=scale), a, b)


def update(before: Model, after: Model) -> Model:
    """The change made by training: after - before. Every update in fedkin has this sign."""
    return mapped(torch.sub, after, before)


def zeros(model: Model) -> Model:
    """A model of the same shapes with all values zero."""
    return mapped(torch.zeros_like, model)


def vector(stacked: Model) -> Tensor:
    """Each client's model as one row: its flattened tensors, joined in the order of their names."""  # (m, d)
    return torch.cat([value.reshape(len(value), -1) for value in stacked.values()], dim=1)


def stacked(models: Sequence[Model]) -> Model:
    """One stacked model of these models."""
    return {name: torch.stack([model[name] for model in models]) for name in models[0]}


def repeated(model: Model, times: int) -> Model:
    """A stacked model with the same model for each of `times` clients. It is a view; nothing is copied."""
    return mapped(lambda value: value.expand(times, *value.shape), model)


def rows(stack: Model, ids: Tensor | slice) -> Model:
    """The stacked model of these rows only."""
    return mapped(lambda value: value[ids], stack)


def row(stack: Model, position: int) -> Model:
    """The one model in this row."""
    return mapped(lambda value: value[position], stack)


def joined(stacks: Sequence[Model]) -> Model:
    """One stacked model with the rows of all these stacked models, in order."""
    return stacks[0] if len(stacks) == 1 else mapped(lambda *values: torch.cat(values), stacks[0], *stacks[1:])


def each(f: Callable[..., Model], *messages: Message) -> Message:
    """Apply `f` to the models that have the same name in all messages, for each name."""
    return {name: f(model, *(other[name] for other in messages[1:])) for name, model in messages[0].items()}


def size(messages: Iterable[Model]) -> tuple[int, int]:
    """How many numbers, and how many bytes, these models have."""
    values = [value for model in messages for value in model.values()]
    return sum(value.numel() for value in values), sum(value.numel() * value.element_size() for value in values)


def weighted(stack: Model, weight: Tensor) -> Model:
    """The weighted mean of the stacked models, computed in float64. The weights need not sum to one."""
    share = weight.double() / weight.double().sum()
    return mapped(lambda value: weighted_rows(value, share), stack)


def weighted_rows(value: Tensor, share: Tensor) -> Tensor:
    """The sum of the rows of one tensor with these shares, (m, ...) -> (...), computed in float64.

    On a CPU it goes in blocks of columns: a copy of all numbers in float64 takes longer than the sum. A block is wide
    enough for every column to be summed as it is in one product, so that the result is the same to the bit.
    """
    flat = value.reshape(len(value), -1)
    width, out = flat.shape[1], torch.empty(flat.shape[1], dtype=value.dtype, device=value.device)
    some = 1 if value.is_cuda or value.dtype == torch.float64 else max(1, width // COLUMNS)
    for at in range(some):
        columns = slice(at * COLUMNS, width if at == some - 1 else (at + 1) * COLUMNS)  # the last one has the rest
        out[columns] = torch.tensordot(share, flat[:, columns].double(), dims=1)
    return out.reshape(value.shape[1:])


def finite(stack: Model) -> Tensor:
    """For each stacked model, whether all of its numbers are finite, and the norm of each tensor is at most `LARGEST`.

    Beyond it training has diverged. Rounding then decides when a number is no longer finite, and engines round in
    different ways.
    """  # (m,) bool
    found = [
        torch.linalg.vector_norm(value.reshape(len(value), -1), dim=1) <= LARGEST
        for value in stack.values()
        if value.is_floating_point()
    ]
    return torch.stack(found).all(0) if found else torch.ones(len(next(iter(stack.values()))), dtype=torch.bool)


def flat(nested: Mapping[str, object], prefix: str = "") -> dict[str, Tensor]:
    """A nested dictionary of tensors as a flat one, with names joined by '/'. Empty dictionaries are dropped."""
    result: dict[str, Tensor] = {}
    for name, value in nested.items():
        if isinstance(value, dict):
            result |= flat(value, f"{prefix}{name}/")
        elif isinstance(value, Tensor):
            result[prefix + name] = value
        else:
            raise TypeError(f"state holds tensors only, but '{prefix}{name}' is a {type(value).__name__}")
    return result


def nested(flat: dict[str, Tensor]) -> dict[str, object]:
    """The inverse of `flat`, but for empty dictionaries."""
    result: dict[str, object] = {}
    for path, value in flat.items():
        *folders, name = path.split("/")
        here = result
        for folder in folders:
            here = here.setdefault(folder, {})  # type: ignore[assignment]
        here[name] = value
    return result
