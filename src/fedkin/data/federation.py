"""`Federation`, the form that every dataset gets: one flat store of samples, and for each client a list of rows.

Stored samples are never padded. Only the plan of a round's batches is padded (see `core/batches.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from fedkin.data.attacks import Attack
from fedkin.errors import BadInput, is_text, shown

Task = Literal["classify", "regress"]


@dataclass(frozen=True)
class Index:
    """Lists of row numbers of different lengths, one for each client: client i has `rows[start[i] : start[i + 1]]`."""

    rows: Tensor  # (k,) int64
    start: Tensor  # (n + 1,) int64

    @staticmethod
    def of(lists: Iterable[Sequence[int] | np.ndarray | Tensor]) -> Index:
        """The index of these lists of row numbers, one for each client."""
        parts = [np.asarray(rows, dtype=np.int64).reshape(-1) for rows in lists]  # tensors would take ten times as long
        start = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        return Index(torch.from_numpy(np.concatenate([np.zeros(0, dtype=np.int64), *parts])), torch.from_numpy(start))

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, client: int) -> Tensor:
        return self.rows[self.start[client] : self.start[client + 1]]

    @property
    def sizes(self) -> Tensor:  # (n,) int64
        """The number of rows of each client."""
        return self.start.diff()

    def only(self, ids: Tensor) -> Index:
        """The lists of these clients."""
        sizes = self.sizes[ids]
        start = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        at = torch.arange(int(start[-1])) + (self.start[ids] - start[:-1]).repeat_interleave(sizes)
        return Index(self.rows[at], start)

    def lists(self) -> list[Tensor]:
        """The row numbers of each client."""
        return [self.rows[a:b] for a, b in pairwise(self.start.tolist())]


def check_names(what: str, names: Sequence[str]) -> None:
    """Refuse a name that no file can hold."""
    if not is_text("".join(names)):
        odd = next(name for name in names if not is_text(name))
        raise BadInput(f"The name of the {what} {shown(odd)} is no text; rename it.")


@dataclass(frozen=True)
class Federation:
    """Samples and the clients that own them.

    `x` has float features or images, or integer tokens. `y` has class numbers or, where the task is "regress", the
    values to predict, and then `classes` is 1: the number of outputs of a network.
    """

    name: str
    x: Tensor  # (N, ...) float32, or an integer type for tokens
    y: Tensor  # (N,) int64, or float32 to "regress"
    classes: int
    train: Index
    test: Index
    validation: Index | None = None
    common: Tensor | None = None  # rows of the common test set, owned by no client
    server: Tensor | None = None  # rows of the server's own validation set, owned by no client
    clients: tuple[str, ...] = ()  # the clients' names; empty if they have none
    vocabulary: int | None = None  # number of tokens, for text
    left_out: tuple[str, ...] = ()  # names of the clients without samples, which do not take part
    irrelevant: Tensor | None = None  # (n,) bool: the truth, for the evaluation only
    source: dict[str, object] = field(default_factory=dict)  # where the samples came from, for the record
    task: Task = "classify"
    labels: tuple[str, ...] = ()  # the classes' names; empty if they have none
    target_scale: Tensor | None = None  # (n,) what 1 in `y` is worth at each client in the target's own unit
    preparation: dict[str, Any] | None = None  # how a row of the user's table became a sample, as JSON
    notes: tuple[str, ...] = ()  # sentences about the data that the user should read before a run
    numbers: Tensor | None = (
        None  # (n,) the clients' numbers in the federation of which this is a part; None: 0, 1, ...
    )
    attack: Attack | None = None  # what irrelevant clients upload instead of what they have trained
    elsewhere: bool = False  # whether the samples lie elsewhere, and `x` and `y` have one row that stands for them all

    def __post_init__(self) -> None:
        check_names("client", self.clients)
        check_names("class", self.labels)

    @property
    def n(self) -> int:
        """The number of clients."""
        return len(self.train)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return tuple(self.x.shape[1:])

    @property
    def names(self) -> tuple[str, ...]:
        """The clients' names, or their numbers if they have no names."""
        return self.clients or tuple(str(client) for client in range(self.n))

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes' names, or their numbers if they have no names."""
        return self.labels or tuple(str(number) for number in range(self.classes))

    def together(self, ids: Tensor) -> Federation:
        """One client that holds the training samples of all these clients; nothing is tested there."""
        whole, none = Index.of([torch.cat([self.train[client] for client in ids.tolist()])]), Index.of([[]])
        return replace(
            self,
            train=whole,
            test=none,
            validation=None,
            clients=("all",),
            irrelevant=None,
            attack=None,
            target_scale=None,
            numbers=None,
        )

    def only(self, ids: Tensor) -> Federation:
        """The part that belongs to these clients, with their own samples and no others.

        A client's random streams are keyed by its number, and it keeps that number (`numbers`). A part has no attack:
        attackers know what all clients upload, and a part of the clients does not.
        """
        lists = [index.only(ids) for index in (self.train, self.test, self.validation) if index is not None]
        used, place = torch.cat([some.rows for some in lists]).unique(return_inverse=True)
        parts = place.split([len(some.rows) for some in lists])
        own = [Index(rows, some.start) for rows, some in zip(parts, lists, strict=True)]
        return replace(
            self,
            x=self.x[used],
            y=self.y[used],
            train=own[0],
            test=own[1],
            validation=own[2] if len(own) > 2 else None,
            common=None,
            server=None,
            clients=tuple(self.clients[client] for client in ids.tolist()) if self.clients else (),
            irrelevant=None if self.irrelevant is None else self.irrelevant[ids],
            attack=None,
            target_scale=None if self.target_scale is None else self.target_scale[ids],
            numbers=ids if self.numbers is None else self.numbers[ids],
        )

    def label_counts(self) -> np.ndarray:  # (n, classes)
        """How many training samples of each class each client has; to regress, how many it has."""
        if self.task == "regress":
            return self.train.sizes.numpy()[:, None]
        client = np.repeat(np.arange(self.n), self.train.sizes.numpy())
        label = self.y[self.train.rows].numpy()
        return np.bincount(client * self.classes + label, minlength=self.n * self.classes).reshape(self.n, self.classes)
