"""Makes a federation of the user's own arrays or tensors.

Features become float32 and are not scaled. Labels that are whole numbers from 0 on are taken as class numbers. Other
labels, such as text or -1 and 1, are numbered in sorted order, and `Federation.labels` has their names. Numbers with a
fraction are to be regressed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import ArrayLike

from fedkin.data.federation import Federation, Index, Task, check_names
from fedkin.data.holdout import split
from fedkin.data.spec import Data
from fedkin.data.target import read_target
from fedkin.data.uncollected import uncollected
from fedkin.data.values import check_size
from fedkin.errors import BadInput, require

PARTS = ("train", "validation", "test")
APART = 100.0  # standard deviations of two features further apart than this call for a warning

Pair = tuple[ArrayLike, ArrayLike]  # x and y
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # of one client, in the order of PARTS


@dataclass
class _Collected:
    """The samples of all clients so far."""

    vocabulary: int | None
    x: list[np.ndarray] = field(default_factory=list)
    y: list[np.ndarray] = field(default_factory=list)
    count: int = 0  # samples so far

    def add(self, client: str, pair: Pair) -> np.ndarray:
        """Append a client's samples, and return the numbers of their rows."""
        x, y = _checked_arrays(client, pair, self.vocabulary)
        if len(y):
            shape = (self.x or [x])[0].shape[1:]
            require(x.shape[1:] == shape, f"Client {client} has samples of shape {x.shape[1:]}, others of {shape}.")
            self.x.append(x)
            self.y.append(y)
        self.count += len(y)
        return np.arange(self.count - len(y), self.count)


@uncollected()
def from_clients(
    clients: Mapping[str, Pair | Mapping[str, Pair]],
    test: float = 0.25,
    validation: float = 0.0,
    seed: int = 0,
    name: str = "own",
    vocabulary: int | None = None,
    task: Task | None = None,
) -> Federation:
    """A federation of the user's own arrays or tensors.

    `clients` maps each client's name to its samples: either one pair `(x, y)`, of which the fractions `test` and
    `validation` are held out, or a dict of pairs with the keys "train", "test" and "validation", which are not split.
    `vocabulary` says that x has tokens, whole numbers below `vocabulary`. `name` is the federation's name.
    `task`, "classify" or "regress", says what is meant by labels that are many different whole numbers.
    """
    Data("./own", task=task, test=test, validation=validation, seed=seed)  # for its checks
    require(clients, "A federation needs at least one client.")
    check_names("client", [str(client) for client in clients])
    collected = _Collected(vocabulary)
    parts: dict[str, Rows] = {}
    for client, samples in ((str(client), samples) for client, samples in clients.items()):
        require(client not in parts, f"Two clients are called {client}, perhaps one by a number; rename one.")
        if isinstance(samples, Mapping):
            parts[client] = _add_parts(collected, client, samples)
        else:
            parts[client] = split(collected.add(client, samples), test, validation, seed, client)
    training = {client: rows for client, rows in parts.items() if len(rows[0])}
    require(training, "No client has any samples to train on.")
    x = np.concatenate(collected.x)
    if vocabulary is None:
        _check_finite(x, parts)
    found = read_target(np.concatenate(collected.y), name, task)
    y = torch.from_numpy(found.y)
    train_rows, validation_rows, test_rows = zip(*training.values(), strict=True)
    about: dict[str, object] = {"kind": "own", "id": name, "rows": {"train": collected.count}, "labels": found.listed}
    about |= {"divided": "given"} if any(isinstance(samples, Mapping) for samples in clients.values()) else {}
    return Federation(
        name=name,
        x=torch.from_numpy(x),
        y=y if found.task == "classify" else y.float(),
        classes=found.classes,
        train=Index.of(train_rows),
        validation=Index.of(validation_rows) if any(len(rows) for rows in validation_rows) else None,
        test=Index.of(test_rows),
        clients=tuple(training),
        vocabulary=vocabulary,
        left_out=tuple(client for client in parts if client not in training),
        source=about,
        task=found.task,
        labels=found.labels,
        notes=() if vocabulary is not None else _scale_notes(x, found.y, np.concatenate(train_rows), found.task),
    )


def _scale_notes(x: np.ndarray, y: np.ndarray, train: np.ndarray, task: str) -> tuple[str, ...]:
    """A sentence if features differ much in scale, or a target to regress is large, by the training rows.

    One step size cannot suit both, and clients then learn next to nothing.
    """
    step = max(1, len(train) // 10_000)  # of a large dataset a part is enough
    spread = x[train[::step]].std(0, dtype=np.float64) if x.ndim == 2 else np.ones(1)  # pixels are no features
    spread = spread[spread > 0]
    advice = "standardise them, each client by its own training rows, as fedkin does with tables (--data table.csv)"
    notes = []
    if len(spread) and spread.max() > APART * spread.min():
        low, high = (f"{value:.3g}" for value in (spread.min(), spread.max()))
        notes.append(f"The features differ much in scale (standard deviations from {low} to {high}); {advice}.")
    if task == "regress" and (large := float(y[train].std())) > APART:
        notes.append(f"The values to predict have a standard deviation of {large:.3g}; {advice}.")
    return tuple(notes)


def _check_finite(x: np.ndarray, parts: Mapping[str, Rows]) -> None:
    """Refuse a feature that is not a finite number, and name the client that has it."""
    if np.isfinite(x).all():
        return
    bad = np.flatnonzero(~np.isfinite(x).reshape(len(x), -1).all(1))
    client = next(client for client, rows in parts.items() if np.isin(bad, np.concatenate(rows)).any())
    raise BadInput(f"Client {client} has a feature that is not a finite number.")


def _add_parts(collected: _Collected, client: str, pairs: Mapping[str, Pair]) -> Rows:
    """Append the samples of a client that is already split, and return the rows of each part."""
    wrong = [part for part in pairs if part not in PARTS]
    require(not wrong, f"Client {client} has a part called {', '.join(wrong)}; use {', '.join(PARTS)}.")
    rows = {part: collected.add(client, pair) for part, pair in pairs.items()}
    train, validation, test = (rows.get(part, np.zeros(0, dtype=np.int64)) for part in PARTS)
    return train, validation, test


def _checked_arrays(client: str, pair: Pair, vocabulary: int | None) -> tuple[np.ndarray, np.ndarray]:
    """A client's x and y as arrays, refused if they are not samples with finite features or tokens, and labels."""
    require(isinstance(pair, tuple | list) and len(pair) == 2, f"Client {client} needs a pair (x, y).")
    x, y = (np.asarray(part.detach().cpu() if isinstance(part, torch.Tensor) else part) for part in pair)
    require(x.ndim >= 1 and y.ndim == 1, f"Client {client} needs x with a row a sample and y with a number a sample.")
    require(len(x) == len(y), f"Client {client} has {len(x)} samples but {len(y)} labels.")
    if vocabulary is not None:
        require(x.dtype.kind in "iu", f"Client {client} has tokens that are not whole numbers.")
        inside = not x.size or (x.min() >= 0 and x.max() < vocabulary)
        require(inside, f"Client {client} has a token outside of 0 to {vocabulary - 1}.")
        return x, y
    require(x.dtype.kind in "fiub", f"Client {client} has features that are not numbers.")
    check_size(x, f"A feature of client {client}")
    return x.astype(np.float32, copy=False), y
