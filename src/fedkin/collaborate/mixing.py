"""What the parts with a model for each client have in common: each client gets a mixture of clients' models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import torch
from torch import Tensor

from fedkin.contract import Gives, Needs
from fedkin.core import tree
from fedkin.core.geometry import blocks
from fedkin.core.tree import Model
from fedkin.errors import BadInput, require
from fedkin.fields import Rule
from fedkin.messages import Kin, Reply, Sent, Slot, Task
from fedkin.parts import Collaborate

GRANULARITIES = ("layer", "tensor", "model")

Granularity = Annotated[
    Literal["layer", "tensor", "model"],
    Rule(lambda v: v in GRANULARITIES, f"{{field}} is one of {GRANULARITIES}, not '{{value}}'."),
]


@dataclass(frozen=True)
class Weights:
    """The weight of every source in the mixture of every client, and numbers about them for the record."""

    of: dict[str, Tensor]  # component -> (m, s); rows sum to one
    numbers: dict[str, float] = field(default_factory=dict)


class Mixing(Collaborate):
    """Before training, each selected client is sent a mixture of the models that the selected clients hold now.

    The weight of a client in the mixtures of the others is multiplied by the weight that its last reply was kept with;
    its weight in its own mixture is not. A client whose mixture would have no source keeps its own model. A model that
    is not finite is no source for anybody and stays as it is.
    """

    @property
    def needs(self) -> Needs:
        return Needs(current=True)

    @property
    def gives(self) -> Gives:
        return Gives(own_model=True)

    def similarities(self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None) -> Weights:
        """The weights of these models in each other's mixtures.

        stacked: the models, all finite. kept: how far each counts as a source for the others, (m,). sizes: the training
        samples of each client. origin: the initial model.
        """
        raise TypeError(f"{type(self).__name__} does not say who learns from whom")

    def granular(self) -> Granularity:
        """Which parts of a model have weights of their own (`components`)."""
        return "model"

    def sources(self, slot: Slot, ids: Tensor, current: Model) -> tuple[Tensor, Model]:
        """The clients whose models are mixed, ascending, and these models. The clients `ids` must be among them."""
        return ids, current

    def weights(
        self, stacked: Model, kept: Tensor, sizes: Tensor | None = None, origin: Model | None = None
    ) -> dict[str, Tensor]:
        """The weights of these models in each other's mixtures, by component: (m, m) each."""
        return self.weighed(stacked, kept, sizes, origin)[2].of

    def mix(self, stacked: Model, kept: Tensor, sizes: Tensor | None = None, origin: Model | None = None) -> Model:
        """A mixture of these models for each of them, stacked."""
        models, finite, weights = self.weighed(stacked, kept, sizes, origin)
        return self.blend(weights.of, models, stacked, finite)

    def weighed(
        self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None
    ) -> tuple[Model, Tensor, Weights]:
        """The models with zeros for those that are not finite, which are finite, and the weights of all."""
        models, finite = finite_models(stacked)
        return models, finite, self.similarities(models, kept.double() * finite, sizes, origin)

    def blend(self, weights: dict[str, Tensor], models: Model, current: Model, finite: Tensor) -> Model:
        """The mixtures of the models with these weights. A client whose current model is not finite keeps that one."""
        mixed = blended(weights, models, components(models, self.granular()))
        if finite.all():
            return mixed
        return tree.mapped(lambda new, old: torch.where(spread(finite, old), new, old), mixed, current)

    def init(self, task: Task) -> Slot:
        for name, value in task.model.items():
            require(value.numel() > 0, f"The model's tensor '{name}' is empty, so clients cannot be compared by it.")
        return {"kept": torch.ones(task.n, dtype=torch.float64)}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        assert current is not None
        sources, stacked = self.sources(slot, ids, current)
        models, finite, found = self.weighed(stacked, slot["kept"][sources], task.sizes[sources], task.model)
        at = torch.searchsorted(sources, ids)
        weights = {component: value[at] for component, value in found.of.items()}  # (m, s)
        mixed = self.blend(weights, models, current, finite[at])
        numbers = found.numbers if finite.all() else {}  # zeros stand for broken models, and numbers would be of zeros
        return Sent(ids, own={"model": mixed}, kin=Kin(ids, sources, weights, numbers)), slot

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        return slot | {"kept": slot["kept"].index_copy(0, reply.ids, kept.double())}


def finite_models(stacked: Model) -> tuple[Model, Tensor]:
    """The models, with zeros in place of every model that is not finite, and which models are finite, (m,)."""
    lengths = {len(value) for value in stacked.values()}
    if len(lengths) != 1:
        raise BadInput(f"Models of different clients do not have the same tensors: stacks of {sorted(lengths)} rows.")
    finite = tree.finite(stacked)
    if finite.all():
        return stacked, finite
    return tree.mapped(lambda value: torch.where(spread(finite, value), value, 0.0), stacked), finite


def spread(mask: Tensor, like: Tensor) -> Tensor:
    """A mask of clients in a shape that broadcasts over their tensors."""
    return mask.reshape(-1, *(1,) * (like.dim() - 1))


def components(model: Model, granularity: Granularity) -> dict[str, list[str]]:
    """The names of the tensors of each component. The component of a layer is its weight and its bias (A-M3)."""
    if granularity == "model":
        return {"model": list(model)}
    found: dict[str, list[str]] = {}
    for name in model:
        found.setdefault(name.rpartition(".")[0] or name if granularity == "layer" else name, []).append(name)
    return found


def normalised(scores: Tensor, kept: Tensor) -> Tensor:
    """Non-negative scores (m, m) as weights: the column of each source is multiplied by its `kept`, except on the
    diagonal, and each row is divided by its sum. A row of zeros becomes the weight 1 of the client's own model."""
    eye = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    counted = torch.where(eye, scores, scores * kept.to(scores.device)[None, :])
    total = counted.sum(1, keepdim=True)
    return torch.where(total > 0, counted / total.clamp(min=torch.finfo(total.dtype).tiny), eye.to(scores.dtype))


def blended(weights: dict[str, Tensor], sources: Model, groups: dict[str, list[str]]) -> Model:
    """The mixture of the sources for each client, component by component."""  # (s, ...) -> (m, ...)
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
