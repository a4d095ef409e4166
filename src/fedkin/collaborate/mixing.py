"""What the parts with a model for each client have in common: each client gets a mixture of clients' models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import torch
from torch import Tensor

from fedkin.collaborate.nearest import Nearest, nearest
from fedkin.contract import Gives, Needs
from fedkin.core import tree
from fedkin.core.geometry import Pairs, blocks, pairs, sketches
from fedkin.core.rng import generator
from fedkin.core.tree import Model
from fedkin.errors import BadInput, require
from fedkin.fields import Rule
from fedkin.messages import Kin, Reply, Sent, Slot, Task
from fedkin.parts import Collaborate

GRANULARITIES = ("layer", "tensor", "model")
MANY = 5000  # clients in a round from which comparing all pairs exactly takes gigabytes and minutes

Granularity = Annotated[
    Literal["layer", "tensor", "model"],
    Rule(lambda v: v in GRANULARITIES, f"{{field}} is one of {GRANULARITIES}, not '{{value}}'."),
]


@dataclass(frozen=True)
class Weights:
    """The weight of every source in the mixture of every client, and numbers about them for the record."""

    of: Mapping[str, Tensor | Nearest]  # component -> (m, s), or the largest of each row; rows sum to one
    numbers: dict[str, float] = field(default_factory=dict)


class Mixing(Collaborate):
    """Before training, each selected client is sent a mixture of the models that the selected clients hold now.

    The weight of a client in the mixtures of the others is multiplied by the weight that its last reply was kept with;
    its weight in its own mixture is not. A client whose mixture would have no source keeps its own model. A model that
    is not finite is no source for anybody and stays as it is.

    Clients are compared with all others, so time and memory grow with the square of their number. Parts that compare by
    `alike` and weigh by `weighted` may have two fields against that. With `sketch=k` each component of a model is
    compared by k numbers, a random projection of it (`geometry.sketches` has its error); a component that has no more
    numbers is compared as it is. With `neighbours=k` a client mixes only the k sources with the largest weights, its
    own model always among them, and the weights are divided by their sum; memory then grows with m k. Their mean sum
    before that is one less the recorded `dropped_weight`. A client whose dropped weight is w is sent a mixture that is
    at most w times the largest distance between two sources away from what it would be sent otherwise.
    """

    sketch: int | None = None
    neighbours: int | None = None

    @property
    def needs(self) -> Needs:
        return Needs(current=True)

    @property
    def gives(self) -> Gives:
        return Gives(own_model=True)

    def similarities(self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None) -> Weights:
        """The weights of these models in each other's mixtures.

        stacked: the models, all finite, or their sketches. kept: how far each counts as a source for the others, (m,).
        sizes: the training samples of each client. origin: the initial model, or its sketch.
        """
        raise TypeError(f"{type(self).__name__} does not say who learns from whom")

    def granular(self) -> Granularity:
        """Which parts of a model have weights of their own (`components`)."""
        return "model"

    def sources(self, slot: Slot, ids: Tensor, current: Model) -> tuple[Tensor, Model]:
        """The clients whose models are mixed, ascending, and these models. The clients `ids` must be among them."""
        return ids, current

    def alike(
        self, kind: Literal["cosine", "distance"], stacked: Model, origin: Model | None = None
    ) -> dict[str, Pairs]:
        """How alike these models are, component by component."""
        groups = components(stacked, self.granular())
        return {name: pairs(stacked, each, kind, origin, hold=self.neighbours is None) for name, each in groups.items()}

    def weighted(self, of: Pairs, weigh: Callable[[Tensor, Tensor], Tensor]) -> Tensor | Nearest:
        """The weights of one component, by how alike the models are in it.

        weigh: gives the weights of some clients, (r, m), by their rows of `of` and by a mask of their own places there.
        """
        rows = weighed_rows(of, weigh)
        if self.neighbours is not None:
            k = min(self.neighbours, of.m)
            return Nearest.joined(((at, nearest(weights, mine, k)) for at, weights, mine in rows), of.squares, k)
        assert of.held is not None
        for at, weights, _ in rows:
            of.held[at] = weights  # a second matrix would be as large
        return of.held

    def weights(
        self,
        stacked: Model,
        kept: Tensor,
        sizes: Tensor | None = None,
        origin: Model | None = None,
        seed: int = 0,
    ) -> dict[str, Tensor]:
        """The weights of these models in each other's mixtures, by component: (m, m) each."""
        found = self.weighed(stacked, kept, sizes, origin, seed)[2].of
        return {name: value.whole(len(kept)) if isinstance(value, Nearest) else value for name, value in found.items()}

    def mix(
        self,
        stacked: Model,
        kept: Tensor,
        sizes: Tensor | None = None,
        origin: Model | None = None,
        seed: int = 0,
    ) -> Model:
        """A mixture of these models for each of them, stacked."""
        models, finite, weights = self.weighed(stacked, kept, sizes, origin, seed)
        return self.blend(weights.of, models, stacked, finite)

    def weighed(
        self, stacked: Model, kept: Tensor, sizes: Tensor | None, origin: Model | None, seed: int = 0
    ) -> tuple[Model, Tensor, Weights]:
        """The models with zeros for those that are not finite, which are finite, and the weights of all."""
        models, finite = finite_models(stacked)
        compared, start = models, origin
        if self.sketch is not None:
            compared, start = sketched(models, origin, self.granular(), self.sketch, seed)
        return models, finite, self.similarities(compared, kept.double() * finite, sizes, start)

    def blend(self, weights: Mapping[str, Tensor | Nearest], models: Model, current: Model, finite: Tensor) -> Model:
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
        kept, sizes = slot["kept"][sources], task.sizes[sources]
        models, finite, found = self.weighed(stacked, kept, sizes, task.model, task.seed)
        at = torch.searchsorted(sources, ids)
        weights = found.of if len(ids) == len(sources) else {name: value[at] for name, value in found.of.items()}
        mixed = self.blend(weights, models, current, finite[at])
        learned = kin(ids, sources, weights, found.numbers)
        if not finite.all():  # zeros stand for broken models, and numbers would be of zeros
            learned = replace(learned, numbers={})
        return Sent(ids, own={"model": mixed}, kin=learned), slot

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        return slot | {"kept": slot["kept"].index_copy(0, reply.ids, kept.double())}

    def cautions(self, task: Task, share: float) -> list[str]:
        """Say so where more clients are compared than is sensible without a sketch and without few neighbours."""
        m, values = self.compared(task, share), self.values()
        sensible = {"sketch": 64, "neighbours": 20}
        advice = [f"collaborate.{name}={k}" for name, k in sensible.items() if values.get(name, k) is None]
        if m <= MANY or not advice:
            return []
        spare = "to spare memory and time, set " + " and ".join(advice)
        return [f"{m} clients are compared with each other in a round; {spare}."]

    def compared(self, task: Task, share: float) -> int:
        """How many clients are compared in a round in which this share of all is selected."""
        return round(share * task.n)


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


def sketched(
    models: Model, origin: Model | None, granularity: Granularity, k: int, seed: int
) -> tuple[Model, Model | None]:
    """The models and the initial one with k numbers in place of each component that has more.

    A component is projected at random by the key (seed, "sketch", component), in every round by the same projection.
    """
    found: Model = {}
    start: Model = {}
    stacks = [models] if origin is None else [models, tree.repeated(origin, 1)]
    for component, names in components(models, granularity).items():
        if sum(models[name][0].numel() for name in names) <= k:
            shorter = [{name: stack[name] for name in names} for stack in stacks]
        else:
            name = f"{component}.sketch" if granularity == "layer" else component  # so that `components` finds it
            gen = generator(seed, f"sketch/{component}")
            shorter = [{name: sketch} for sketch in sketches(stacks, names, k, gen)]
        found |= shorter[0]
        start |= tree.row(shorter[-1], 0)
    return found, None if origin is None else start


def weighed_rows(of: Pairs, weigh: Callable[[Tensor, Tensor], Tensor]) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """The weights of all clients in blocks of rows, and a mask of the clients' own places in each."""
    for at in of.blocks():
        similar = of.rows(at)  # (r, m)
        mine = torch.zeros_like(similar, dtype=torch.bool)
        mine.diagonal(at.start).fill_(True)
        yield at, weigh(similar, mine), mine


def normalised(scores: Tensor, mine: Tensor, kept: Tensor) -> Tensor:
    """Non-negative scores (r, m) as weights: the column of each source is multiplied by its `kept`, except at the
    clients' own places, and each row is divided by its sum. A row of zeros becomes the weight 1 of the client's own
    model."""
    counted = torch.where(mine, scores, scores * kept.to(scores.device)[None, :])
    total = counted.sum(1, keepdim=True)
    return torch.where(total > 0, counted / total.clamp(min=torch.finfo(total.dtype).tiny), mine.to(scores.dtype))


def blended(weights: Mapping[str, Tensor | Nearest], sources: Model, groups: dict[str, list[str]]) -> Model:
    """The mixture of the sources for each client, component by component."""  # (s, ...) -> (m, ...)
    found: Model = {}
    for component, names in groups.items():
        share = weights[component]
        for name in names:
            flat = sources[name].reshape(len(sources[name]), -1)
            out = share.blended(flat) if isinstance(share, Nearest) else product(share, flat)
            found[name] = out.reshape(len(out), *sources[name].shape[1:])
    return {name: found[name] for name in sources}


def product(share: Tensor, flat: Tensor) -> Tensor:
    """share @ flat, in blocks of both."""  # (m, s), (s, d) -> (m, d)
    out = torch.empty(len(share), flat.shape[1], dtype=flat.dtype, device=flat.device)
    for rows in blocks(len(flat), len(share)):
        block = share[rows].to(flat.dtype)
        for at in blocks(*flat.shape):
            out[rows, at] = block @ flat[:, at]
    return out


def kin(ids: Tensor, sources: Tensor, weights: Mapping[str, Tensor | Nearest], numbers: dict[str, float]) -> Kin:
    """Who learns from whom by these weights; where not all are mixed, also the mean weight of what was dropped."""
    few = {name: value for name, value in weights.items() if isinstance(value, Nearest)}
    dropped = {"dropped_weight": float(torch.stack([value.dropped for value in few.values()]).mean())} if few else {}
    shares = {name: value.weights.cpu() if isinstance(value, Nearest) else value for name, value in weights.items()}
    at = {name: sources[value.at.cpu()] for name, value in few.items()}
    return Kin(ids, sources, shares, numbers | dropped, at)
