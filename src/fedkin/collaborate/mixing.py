"""What the model-per-client parts share: which clients are alike, and mixtures of their models.

Everything works on stacked models and in blocks of columns, so that no temporary is larger than what it is made of.
Similarities are computed in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.errors import BadInput, require
from fedkin.parts import Collaborate, Kin, Reply, Sent, Slot, Task

BLOCK = 2**21  # numbers of a temporary
NOTHING = 1e-12  # a norm below this has no direction

Granularity = Literal["layer", "tensor", "model"]


class Mixing(Collaborate):
    """Before training, each selected client gets a mixture of the models that the selected clients hold now.

    `kept` says how far each client counts as a source for the others; a client always counts for itself, and where
    nobody else is left it keeps its own model. A model that is not finite is nobody's source and stays as it is.
    """

    own = True
    mixes_before = True

    def similarities(
        self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None
    ) -> dict[str, Tensor]:
        """The weights, for models that are all finite: component -> (m, m), rows sum to one."""
        raise TypeError(f"{type(self).__name__} does not say who learns from whom")

    def granular(self) -> Granularity:
        return "model"

    def weights(
        self, stacked: Model, kept: Tensor, sizes: Tensor | None = None, origin: Model | None = None
    ) -> dict[str, Tensor]:
        safe, good = sound(stacked)
        return self.similarities(safe, kept.double() * good, sizes, origin)

    def mix(self, stacked: Model, kept: Tensor, sizes: Tensor | None = None, origin: Model | None = None) -> Model:
        safe, good = sound(stacked)
        weights = self.similarities(safe, kept.double() * good, sizes, origin)
        mixed = blended(weights, safe, components(safe, self.granular()))
        if good.all():
            return mixed
        return tree.mapped(lambda new, old: torch.where(spread(good, old), new, old), mixed, stacked)

    def init(self, task: Task) -> Slot:
        for name, value in task.model.items():
            require(value.numel() > 0, f"The model's tensor '{name}' is empty, so clients cannot be compared by it.")
        return {"kept": torch.ones(task.n, dtype=torch.float64)}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        assert current is not None
        mixed = self.mix(current, slot["kept"][ids], task.sizes[ids], task.model)
        return Sent(ids, own={"model": mixed}), slot

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        return slot | {"kept": slot["kept"].index_copy(0, reply.ids, kept.double())}

    def kin(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> Kin | None:
        assert current is not None
        return Kin(ids, ids, self.weights(current, slot["kept"][ids], task.sizes[ids], task.model))


def sound(stacked: Model) -> tuple[Model, Tensor]:
    """The models with those that are not finite set to zero, and which are finite."""
    lengths = {len(value) for value in stacked.values()}
    if len(lengths) != 1:
        raise BadInput(f"Models of different clients do not have the same tensors: stacks of {sorted(lengths)} rows.")
    good = tree.finite(stacked)
    if good.all():
        return stacked, good
    return tree.mapped(lambda value: torch.where(spread(good, value), value, 0.0), stacked), good


def spread(mask: Tensor, like: Tensor) -> Tensor:
    """A mask of clients that broadcasts over their tensors."""
    return mask.reshape(-1, *(1,) * (like.dim() - 1))


def components(model: Model, granularity: Granularity) -> dict[str, list[str]]:
    """The names of the tensors of each component: a layer is its weight and its bias together (A-M3)."""
    if granularity == "model":
        return {"model": list(model)}
    found: dict[str, list[str]] = {}
    for name in model:
        found.setdefault(name.rpartition(".")[0] or name if granularity == "layer" else name, []).append(name)
    return found


def gram(stacked: Model, names: Sequence[str], origin: Model | None = None) -> Tensor:
    """Inner products of the clients' components, less `origin` where it is given."""  # (m, m) float64
    m = len(stacked[names[0]])
    total = torch.zeros(m, m, dtype=torch.float64, device=stacked[names[0]].device)
    for name in names:
        flat = stacked[name].reshape(m, -1)
        start = None if origin is None else origin[name].reshape(-1)
        for at in blocks(m, flat.shape[1]):
            block = flat[:, at].double() if start is None else flat[:, at].double() - start[at].double()
            total += block @ block.mT
    return (total + total.mT) / 2


def blocks(m: int, width: int) -> list[slice]:
    step = max(1, BLOCK // m)
    return [slice(first, first + step) for first in range(0, width, step)]


def cosines(products: Tensor) -> Tensor:
    """COS of the cards: 0 with anything without a direction, exactly 1 with itself, within [-1, 1]."""  # (m, m)
    norms = products.diagonal().clamp(min=0).sqrt()
    found = products / (norms[:, None] * norms[None, :]).clamp(min=NOTHING**2)
    found = torch.where((norms[:, None] < NOTHING) | (norms[None, :] < NOTHING), 0.0, found)
    return found.clamp(-1, 1).fill_diagonal_(1.0)


def distances(products: Tensor) -> Tensor:
    """Squared Euclidean distances."""  # (m, m)
    squares = products.diagonal()
    return (squares[:, None] + squares[None, :] - 2 * products).clamp(min=0).fill_diagonal_(0.0)


def normalised(scores: Tensor, kept: Tensor) -> Tensor:
    """Non-negative scores as weights: each source times how far it is kept, but for a client's own, rows to one."""
    eye = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    counted = torch.where(eye, scores, scores * kept.to(scores.device)[None, :])
    total = counted.sum(1, keepdim=True)
    return torch.where(total > 0, counted / total.clamp(min=torch.finfo(total.dtype).tiny), eye.to(scores.dtype))


def blended(weights: dict[str, Tensor], sources: Model, groups: dict[str, list[str]]) -> Model:
    """Each client's mixture of the sources, component by component."""  # (s, ...) -> (m, ...)
    found: Model = {}
    for component, names in groups.items():
        for name in names:
            value = sources[name]
            share = weights[component].to(value.dtype)  # (m, s)
            flat = value.reshape(len(value), -1)
            out = torch.empty(len(share), flat.shape[1], dtype=value.dtype, device=value.device)
            for at in blocks(len(value), flat.shape[1]):
                out[:, at] = share @ flat[:, at]
            found[name] = out.reshape(len(share), *value.shape[1:])
    return {name: found[name] for name in sources}
