"""What the server, the parts and the clients hand to each other in a run.

`m` is the number of clients of a round, `n` the number of all clients. A *stacked* model has one extra leading axis:
its first row belongs to the first client, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from fedkin.core import tree
from fedkin.core.tree import Batch, Message, Model

__all__ = [
    "NEIGHBOUR",
    "Batch",
    "Kin",
    "Layers",
    "Message",
    "Model",
    "Objective",
    "Reply",
    "Sent",
    "Slot",
    "Task",
    "Tell",
    "Work",
    "nobody",
]

NEIGHBOUR = 1e-3  # the weight from which another client counts as a neighbour

Slot = dict[str, Any]  # what a part remembers: nested dictionaries of tensors, so that a checkpoint can hold it exactly

Layers = Sequence[tuple[str, nn.Module]]  # the layers of a network that is a sequence: each one's name, and its kind

Tell = Callable[[str, float, float], None]  # (what is being done, how much of it is done, of how much)


def nobody(what: str, done: float, of: float) -> None:
    """Tell nobody how far something is."""


@dataclass(frozen=True)
class Task:
    """What the server knows of the problem."""

    n: int
    sizes: Tensor  # (n,) training samples of each client
    rounds: int
    model: Model  # the initial model, the same for all clients
    loss: Callable[[Model, Batch], Tensor]
    validation: Batch | None = None  # the server's own samples, if it has any
    logits: Callable[[Model, Batch], Tensor] | None = None
    classes: int = 0
    shape: tuple[int, ...] = ()  # of one sample as the network can differentiate it: tokens count as embedded
    irrelevant: Tensor | None = (
        None  # (n,) bool: who is irrelevant, only in a method that needs to know (`Needs.truth`)
    )
    seed: int = 0  # the seed of selection, keep and batches
    layers: Layers | None = None  # those of `logits`, if the network is a sequence of common layers
    tell: Tell = nobody  # whom a part tells how far it is whose work may take seconds; it may be told often


@dataclass(frozen=True)
class Sent:
    """What the server sends in a round: `shared` is the same for all clients, `own` has one row for each id."""

    ids: Tensor  # (m,) ascending
    shared: Message = field(default_factory=dict)
    own: Message = field(default_factory=dict)  # stacked
    kin: Kin | None = None  # who learns from whom in what is sent, where each client gets a mixture of its own

    def to(self, ids: Tensor) -> Message:
        """The messages of these clients, stacked. The clients must be among `self.ids`."""
        at = torch.searchsorted(self.ids, ids)
        shared = tree.each(lambda model: tree.repeated(model, len(ids)), self.shared)
        return shared | tree.each(lambda model: tree.rows(model, at), self.own)


@dataclass(frozen=True)
class Reply:
    """What the clients send back, sorted by client. Fewer replies than selected clients are normal."""

    ids: Tensor  # (k,) ascending
    upload: Message  # stacked
    report: dict[str, Tensor]  # size, steps, reach (`Train.reach`), rate, and the numbers of `Needs.reports`; (k,) each
    broken: tuple[
        int, ...
    ] = ()  # clients whose training or upload is not finite or does not fit; they keep what they had
    clipped: tuple[int, ...] = ()  # clients whose upload was far too large, and was shortened

    def only(self, mask: Tensor) -> Reply:
        """The replies of the clients that the mask (or a list of positions) names."""
        if mask.dtype == torch.bool and mask.all():
            return self  # nothing to copy
        upload = tree.each(lambda model: tree.rows(model, mask), self.upload)
        report = {name: value[mask] for name, value in self.report.items()}
        return Reply(self.ids[mask], upload, report, self.broken, self.clipped)

    # An engine on a cluster answers these three without moving the uploads; a part that looks at `upload` gets them.

    def mean(self, name: str, weight: Tensor) -> Model:
        """The weighted mean of the uploads of this name, computed in float64. The weights need not sum to one."""
        return tree.weighted(self.upload[name], weight)

    def finite(self) -> Tensor:
        """For each reply, whether all numbers of its uploads are finite."""  # (k,) bool
        good = torch.ones(len(self.ids), dtype=torch.bool)
        for model in self.upload.values():
            good &= tree.finite(model).cpu()
        return good

    def size(self) -> tuple[int, int]:
        """How many numbers, and how many bytes, all uploads have together."""
        return tree.size(self.upload.values())


@dataclass(frozen=True)
class Kin:
    """Who learns from whom: for each component, the weight of every source in the mixture of every client.

    Where that would be too much, it has only the largest weights of each client and the clients whose weights they are.
    """

    ids: Tensor  # (m,) the clients that receive a mixture
    sources: Tensor  # (s,) the clients whose models are mixed, ascending; the ids are among them
    weights: dict[str, Tensor]  # component -> (m, s), or (m, k) where `nearest` has this component
    numbers: dict[str, float] = field(default_factory=dict)  # further numbers for the record, as a threshold
    nearest: dict[str, Tensor] = field(default_factory=dict)  # component -> (m, k) the sources with these weights

    def own(self, component: str) -> Tensor:
        """The weight of each client's own model."""  # (m,)
        weights = self.weights[component]
        if component in self.nearest:
            return torch.where(self.nearest[component] == self.ids[:, None], weights, 0.0).sum(1)
        return weights[torch.arange(len(self.ids)), torch.searchsorted(self.sources, self.ids)]

    def log(self) -> dict[str, float]:
        """Means over clients and components: the weight of a client's own model, and how many others count."""
        mine = torch.stack([self.own(component) for component in self.weights])  # (L, m)
        count = torch.stack([(value > NEIGHBOUR).sum(1) for value in self.weights.values()])  # (L, m)
        others = count - (mine > NEIGHBOUR).long()
        return {"self_weight": float(mine.mean()), "neighbours": float(others.double().mean())} | self.numbers

    def whole(self) -> Kin:
        """The weights of all sources; zero for those that are not among the nearest."""
        if not self.nearest:
            return self
        weights = dict(self.weights)
        for component, sources in self.nearest.items():
            empty = weights[component].new_zeros(len(self.ids), len(self.sources))
            weights[component] = empty.scatter_(1, torch.searchsorted(self.sources, sources), weights[component])
        return Kin(self.ids, self.sources, weights, self.numbers)

    def largest(self, k: int) -> Kin:
        """At most k weights of each client, the largest, and whose they are. They need not sum to one."""
        weights, nearest = {}, {}
        for component, value in self.weights.items():
            weights[component], at = value.topk(min(k, value.shape[1]), dim=1)
            nearest[component] = self.nearest[component].gather(1, at) if self.nearest else self.sources[at.cpu()]
        return Kin(self.ids, self.sources, weights, self.numbers, nearest)


@dataclass(frozen=True)
class Work:
    """What one client did in a round, as 0-d tensors: its training samples, its steps, and the learning rate."""

    size: Tensor
    steps: Tensor
    rate: Tensor


class Objective(Protocol):
    """f_i of the papers: the mean loss of a model on a batch, the gradient of this loss, and the network's outputs."""

    def logits(self, model: Model, batch: Batch) -> Tensor: ...

    def loss(self, model: Model, batch: Batch) -> Tensor: ...

    def grad(self, model: Model, batch: Batch) -> Model: ...
