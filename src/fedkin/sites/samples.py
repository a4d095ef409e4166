"""The samples of a site: what the server is told of them, and how they are made once sites have agreed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, Protocol

import torch

from fedkin.data import from_clients
from fedkin.data.federation import Federation, Task
from fedkin.data.own_data import Pair
from fedkin.errors import BadInput, require

Given = Federation | Pair | Mapping[str, Pair]  # of one client: ready, to be divided, or divided


class Unreadable(BadInput):
    """A mistake in a site's own data. Its sentence may quote them, so the server is told only that there is one."""

    told = "It cannot read its own data; what is wrong with them is said at the site."


class Samples(Protocol):
    """A site's own samples. What `told` returns is all that the server learns of them before training."""

    def told(self) -> dict[str, Any]:
        """Return, as JSON, what the server is told: 'kind', and what sites of this kind agree on (`agreement.KINDS`).

        Always among it: 'sizes' (samples by split) and 'task'.
        """
        ...

    def federation(self, agreed: dict[str, Any]) -> Federation:
        """Return the samples as a federation with one client, made as it was agreed; refuses what does not fit."""
        ...

    def digest(self, key: bytes) -> str:
        """Return a check sum that changes when the samples do and, without the key, says nothing about them."""
        ...


@dataclass(frozen=True)
class Arrays:
    """Samples as arrays or tensors that `load` gives: a pair (x, y), of which the shares `test` and `validation` are
    held out, a dictionary of pairs by split, or a federation with one client.

    Labels are class numbers, the same at all sites, or numbers to regress. `classes` is how many classes there are,
    where this site may not have seen them all. `task`, "classify" or "regress", says what many whole numbers are.
    """

    name: str
    load: Callable[[], Given]
    classes: int | None = None
    task: Task | None = None
    test: float = 0.25
    validation: float = 0.0
    seed: int = 0

    @cached_property
    def loaded(self) -> Federation:
        """The samples with as many classes as this site knows of."""
        given = self.load()
        if not isinstance(given, Federation):
            task = self.task or ("classify" if self.classes else None)
            given = from_clients({self.name: given}, self.test, self.validation, self.seed, self.name, task=task)
            given = numbered(given)
        require(given.n == 1, f"A site is one client, and its samples belong to {given.n}.")
        if self.classes is None or given.task == "regress":
            return given
        last = given.classes - 1
        require(self.classes > last, f"There are labels up to {last}, which are more than {self.classes} classes.")
        return replace(given, classes=self.classes)

    def told(self) -> dict[str, Any]:
        found = self.loaded
        lists = {"train": found.train, "test": found.test, "validation": found.validation}
        return {
            "kind": "arrays",
            "sizes": {name: len(index.rows) for name, index in lists.items() if index is not None},
            "task": found.task,
            "shape": list(found.shape),
            "classes": found.classes,
            "vocabulary": found.vocabulary,
        }

    def federation(self, agreed: dict[str, Any]) -> Federation:
        found = self.loaded
        shape, task = list(found.shape), found.task
        fits = (agreed.get("shape"), agreed.get("task")) == (shape, task)
        require(fits, f"This site's samples have the shape {shape}, to {task}; the server asks for others.")
        classes, words = int(agreed.get("classes") or 0), int(agreed.get("vocabulary") or 0)
        require(classes >= found.classes, f"This site has {found.classes} classes, and the server knows of {classes}.")
        enough = words >= (found.vocabulary or 0)
        require(enough, f"This site has {found.vocabulary} words, and the server knows of {words}.")
        return replace(found, classes=classes, vocabulary=words or None)

    def digest(self, key: bytes) -> str:
        return digest_of(self.loaded, key)


def numbered(federation: Federation) -> Federation:
    """Return the federation with its labels as class numbers; a site may lack the class 0, and any other one."""
    if not federation.labels:
        return federation
    plain = all(label.isdigit() for label in federation.labels)
    require(plain, "A site's labels are class numbers from 0 on, the same at all sites.")
    numbers = torch.tensor([int(label) for label in federation.labels])
    return replace(federation, y=numbers[federation.y], classes=int(numbers.max()) + 1, labels=())


def digest_of(federation: Federation, key: bytes) -> str:
    """Return a check sum of all samples of a federation, keyed by these bytes."""
    digest = blake2b(digest_size=16, key=key)
    lists = [index for index in (federation.train, federation.test, federation.validation) if index is not None]
    for part in [federation.x, federation.y, *(values for index in lists for values in (index.rows, index.start))]:
        digest.update(part.contiguous().numpy().tobytes())
    return digest.hexdigest()
