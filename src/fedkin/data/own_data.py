"""Reads the user's own data: a folder with a file for each client, a table with a column of clients, or arrays.

Features become float32 and are not scaled. Labels that are whole numbers from 0 on are taken as class numbers. Other
labels, such as text or -1 and 1, are numbered in sorted order, and `Federation.source["labels"]` lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from fedkin.data.federation import Federation, Index
from fedkin.data.holdout import split
from fedkin.data.notation import partition_argument
from fedkin.data.samples import Samples
from fedkin.data.spec import TABLES, Data
from fedkin.data.tables import Table, read_table
from fedkin.errors import require

PARTS = ("train", "validation", "test")
LARGEST = 1000  # a label of this size or more is taken as the name of a class, not as its number

Pair = tuple[ArrayLike, ArrayLike]  # x and y
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # of one client, in the order of PARTS


def read_own(data: Data) -> Samples:
    """The samples in the file or the folder `data.name`."""
    path = Path(data.name).expanduser()
    require(path.exists(), f"There is no file or folder {data.name}.")
    name, column = partition_argument(data.partition or "natural")
    asked = data.client or (str(column) if column is not None and name == "natural" else None)
    if path.is_file():
        require(path.suffix.lower() in TABLES, f"{data.name} is none of {', '.join(TABLES)}.")
        tables = {path: read_table(path, asked, data.target, needs_client=name == "natural")}
    else:
        files = sorted(file for file in path.iterdir() if file.is_file() and file.suffix.lower() in TABLES)
        require(files, f"The folder {data.name} holds no {', '.join(TABLES)} file.")
        tables = {file: read_table(file, asked, data.target, needs_client=asked is not None) for file in files}
        if asked is None:
            tables = {file: table.owned_by(file.stem) for file, table in tables.items()}
    return _joined_tables(tables, data)


def _joined_tables(tables: dict[Path, Table], data: Data) -> Samples:
    """The rows of all tables as one set of samples. A client may have rows in several tables."""
    first = next(iter(tables.values()))
    for file, table in tables.items():
        require(
            table.columns == first.columns and table.x.shape[1:] == first.x.shape[1:],
            f"{file.name} has the features {_features(table)}, but {next(iter(tables)).name} has {_features(first)}.",
        )
    owners = list(dict.fromkeys(owner for table in tables.values() for owner in table.owners))
    number = {owner: i for i, owner in enumerate(owners)}
    owner = None
    if all(table.owner is not None for table in tables.values()):
        renumbered = [np.array([number[o] for o in t.owners], dtype=np.int64) for t in tables.values()]
        owner = np.concatenate([new[t.owner] for new, t in zip(renumbered, tables.values(), strict=True)])
    y, labels = class_numbers(np.concatenate([table.y for table in tables.values()]), data.name)
    return Samples(
        x=torch.from_numpy(np.concatenate([table.x for table in tables.values()])),
        y=torch.from_numpy(y),
        classes=len(labels),
        owner=owner,
        owners=tuple(owners),
        source={"kind": "own", "id": Path(data.name).name, "rows": {"train": len(y)}, "labels": labels},
    )


def _features(table: Table) -> str:
    """The names of the features, or their shape if they have no names."""
    return ", ".join(table.columns) if table.columns else f"of shape {table.x.shape[1:]}"


def class_numbers(labels: np.ndarray, name: str) -> tuple[np.ndarray, list[Any]]:
    """The class number of each sample, and the label that each class number stands for. `name` is for the errors."""
    require(len(labels), f"{name} has no samples.")
    if labels.dtype.kind == "f":
        require(np.isfinite(labels).all(), f"{name} has a label that is missing or not a finite number.")
        require((labels == np.rint(labels)).all(), f"{name} has labels that are not classes, such as {labels[0]}.")
        labels = labels.astype(np.int64)
    if labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < LARGEST:
        return labels.astype(np.int64), list(range(int(labels.max()) + 1))
    names, y = np.unique(labels, return_inverse=True)
    return y.reshape(-1).astype(np.int64), names.tolist()


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


def from_clients(
    clients: Mapping[str, Pair | Mapping[str, Pair]],
    test: float = 0.25,
    validation: float = 0.0,
    seed: int = 0,
    name: str = "own",
    vocabulary: int | None = None,
) -> Federation:
    """A federation of the user's own arrays or tensors.

    `clients` maps each client's name to its samples: either one pair `(x, y)`, of which the fractions `test` and
    `validation` are held out, or a dict of pairs with the keys "train", "test" and "validation", which are not split.
    `vocabulary` says that x has tokens, whole numbers below `vocabulary`. `name` is the federation's name.
    """
    Data(test=test, validation=validation, seed=seed)  # for its checks
    require(clients, "A federation needs at least one client.")
    collected = _Collected(vocabulary)
    parts: dict[str, Rows] = {}
    for client, samples in ((str(client), samples) for client, samples in clients.items()):
        if isinstance(samples, Mapping):
            parts[client] = _add_parts(collected, client, samples)
        else:
            parts[client] = split(collected.add(client, samples), test, validation, seed, client)
    training = {client: rows for client, rows in parts.items() if len(rows[0])}
    require(training, "No client has any samples to train on.")
    y, labels = class_numbers(np.concatenate(collected.y), name)
    train_rows, validation_rows, test_rows = zip(*training.values(), strict=True)
    return Federation(
        name=name,
        x=torch.from_numpy(np.concatenate(collected.x)),
        y=torch.from_numpy(y),
        classes=len(labels),
        train=Index.of(train_rows),
        validation=Index.of(validation_rows) if any(len(rows) for rows in validation_rows) else None,
        test=Index.of(test_rows),
        clients=tuple(training),
        vocabulary=vocabulary,
        left_out=tuple(client for client in parts if client not in training),
        source={"kind": "own", "id": name, "rows": {"train": collected.count}, "labels": labels},
    )


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
    require(np.isfinite(x).all(), f"Client {client} has a feature that is not a finite number.")
    return x.astype(np.float32), y
