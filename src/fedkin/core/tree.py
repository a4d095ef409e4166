"""Models as dictionaries of tensors, and stacks of them: one extra leading axis, the clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

Model = dict[str, Tensor]
Message = dict[str, Model]
Batch = dict[str, Tensor]


def mapped(f: Callable[..., Tensor], first: Model, *rest: Model) -> Model:
    """`f` of the tensors of one name, name by name."""
    return {name: f(value, *(other[name] for other in rest)) for name, value in first.items()}


def added(a: Model, b: Model, scale: float = 1.0) -> Model:
    """a + scale b."""
    return mapped(lambda x, y: torch.add(x, y, alpha=scale), a, b)


def update(before: Model, after: Model) -> Model:
    """What training changed: after - before. An update has this sign everywhere."""
    return mapped(torch.sub, after, before)


def zeros(model: Model) -> Model:
    return mapped(torch.zeros_like, model)


def vector(stacked: Model) -> Tensor:
    """Each model as one row, in the fixed order of its names."""  # (m, d)
    return torch.cat([value.reshape(len(value), -1) for value in stacked.values()], dim=1)


def unvector(rows: Tensor, like: Model) -> Model:
    """The inverse of `vector`; `like` is a stack of such models, of any length."""
    shapes = {name: tuple(value.shape[1:]) for name, value in like.items()}
    parts = rows.split([int(torch.Size(shape).numel()) for shape in shapes.values()], dim=1)
    return {name: part.reshape(len(rows), *shape) for part, (name, shape) in zip(parts, shapes.items(), strict=True)}


def stacked(models: Sequence[Model]) -> Model:
    return {name: torch.stack([model[name] for model in models]) for name in models[0]}


def repeated(model: Model, times: int) -> Model:
    """The same model for every client: a view, nothing is copied."""
    return mapped(lambda value: value.expand(times, *value.shape), model)


def rows(stack: Model, ids: Tensor | slice) -> Model:
    return mapped(lambda value: value[ids], stack)


def row(stack: Model, position: int) -> Model:
    return mapped(lambda value: value[position], stack)


def joined(stacks: Sequence[Model]) -> Model:
    """Stacks one after another."""
    return stacks[0] if len(stacks) == 1 else mapped(lambda *values: torch.cat(values), stacks[0], *stacks[1:])


def each(f: Callable[..., Model], *messages: Message) -> Message:
    """`f` of the models of one name, for every named model of a message."""
    return {name: f(model, *(other[name] for other in messages[1:])) for name, model in messages[0].items()}


def size(messages: Iterable[Model]) -> tuple[int, int]:
    """Numbers and bytes in these models."""
    values = [value for model in messages for value in model.values()]
    return sum(value.numel() for value in values), sum(value.numel() * value.element_size() for value in values)


def weighted(stack: Model, weight: Tensor) -> Model:
    """The mean of the stacked models with these weights (they need not sum to one), accumulated in float64."""
    share = weight.double() / weight.double().sum()
    return mapped(lambda value: torch.tensordot(share, value.double(), dims=1).to(value.dtype), stack)


def finite(stack: Model) -> Tensor:
    """Which of the stacked models are finite in every number."""  # (m,) bool
    largest = [torch.linalg.vector_norm(value.reshape(len(value), -1), torch.inf, dim=1) for value in stack.values()]
    return torch.stack(largest).isfinite().all(0)  # a nan or an infinity shows in the largest, without a temporary


def flat(nested: Mapping[str, object], prefix: str = "") -> dict[str, Tensor]:
    """A nested dictionary of tensors as one level, names joined by '/'; empty dictionaries vanish."""
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
    """The inverse of `flat`."""
    result: dict[str, object] = {}
    for path, value in flat.items():
        *folders, name = path.split("/")
        here = result
        for folder in folders:
            here = here.setdefault(folder, {})  # type: ignore[assignment]
        here[name] = value
    return result
