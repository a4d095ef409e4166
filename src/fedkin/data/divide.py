"""Divides samples among clients, and each client's samples into training, validation and test rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from fedkin.data.catalogue import Entry
from fedkin.data.federation import Federation, Index
from fedkin.data.holdout import dealt_by_class, server_rows, split
from fedkin.data.notation import FEDMCSA, partition_argument
from fedkin.data.partition import partition
from fedkin.data.published_partitions import PUBLISHED
from fedkin.data.samples import Samples
from fedkin.data.seeds import keyed_generator
from fedkin.data.spec import Data
from fedkin.errors import BadInput, require, unknown

Shares = dict[str, np.ndarray]  # client -> rows


def divide(samples: Samples, data: Data, entry: Entry | None = None) -> Federation:
    """The federation of these samples, divided as `data` says. All draws depend on the data seed.

    `entry` has the defaults of a named dataset; it is None for the user's own data.
    """
    official = data.holdout == "official"
    server, pool = server_rows(_pool(samples, data), data)
    shares, source = _shares(samples, data, entry, pool)
    left_out = tuple(name for name, rows in shares.items() if not len(rows))
    shares = {name: rows for name, rows in _without(shares, data).items() if len(rows)}
    require(shares, f"No client of {data.name} has any samples.")

    parts = [_parts(samples, data, name, rows) for name, rows in shares.items()]
    test, common = [rows for _, _, rows in parts], None
    if official:
        rest = np.arange(samples.official or 0, len(samples.y))
        test = dealt_by_class(list(shares.values()), samples.y.numpy(), rest, samples.classes, data.seed)
        common = torch.from_numpy(rest)
    return Federation(
        name=data.dataset,
        x=samples.x,
        y=samples.y,
        classes=samples.classes,
        train=Index.of([rows[: data.samples] for rows, _, _ in parts]),
        validation=Index.of([rows for _, rows, _ in parts]) if data.validation else None,
        test=Index.of(test),
        common=common,
        server=server,
        clients=tuple(shares),
        vocabulary=samples.vocabulary,
        left_out=left_out,
        source=samples.source | source,
        task=samples.task,
        labels=samples.labels,
        notes=samples.notes,
    )


def _parts(samples: Samples, data: Data, client: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A client's training, validation and test rows, by the dataset's own division if it has one."""
    if samples.division is not None:
        train, test = samples.division(rows, samples.y.numpy(), data.split)
        return train, rows[:0], test
    fraction = 0.0 if data.holdout == "official" else data.test
    return split(rows, fraction, data.validation, data.seed, client, samples.ordered, data.split)


def _without(shares: Shares, data: Data) -> Shares:
    """The shares of the clients that are not to be left out."""
    for name in data.without or ():
        if name not in shares:
            raise unknown("client", name, shares)
    return {name: rows for name, rows in shares.items() if name not in (data.without or ())}


def divided_again(federation: Federation, number: int) -> Federation:
    """Another division of each client's own samples, into parts of the same sizes; 0 is the federation as it is.

    What was made of the samples after the first division would not fit the second, so it is refused.
    """
    if not number:
        return federation
    changed = federation.preparation is not None or federation.irrelevant is not None
    require(
        not changed,
        "Splits of a table, or with irrelevant clients, need an fk.Data, not the federation loaded from it.",
    )
    given = federation.source.get("divided") == "given"
    require(not given, "These clients came with their own parts for training and test, so there is one split only.")
    lists = [federation.train, *(index for index in (federation.validation, federation.test) if index is not None)]
    parts: list[list[np.ndarray]] = [[] for _ in lists]
    for client, name in enumerate(federation.names):
        own = [index[client].numpy() for index in lists]
        order = keyed_generator(0, f"split {number}", name).permutation(np.sort(np.concatenate(own)))
        for part, rows in zip(parts, np.split(order, np.cumsum([len(rows) for rows in own])[:-1]), strict=True):
            part.append(rows)
    made = [Index.of(part) for part in parts]
    validation = made[1] if len(made) == 3 else None
    source = federation.source | {"split": number}
    return replace(federation, train=made[0], validation=validation, test=made[-1], source=source)


def _pool(samples: Samples, data: Data) -> np.ndarray:
    """The rows that are divided among the clients and the server: all, or the official training split."""
    pool = np.arange(len(samples.y))
    if data.holdout != "official":
        return pool
    require(
        samples.official is not None and samples.official < len(pool),
        f"{data.name} has no official test split; use holdout='split'.",
    )
    return pool[: samples.official]


def _shares(samples: Samples, data: Data, entry: Entry | None, pool: np.ndarray) -> tuple[Shares, dict[str, object]]:
    """Each client's rows of `pool`, and what the record says about the partition."""
    spec = data.partition or (entry.partition if entry else "natural")
    name, argument = partition_argument(spec)
    if name == "natural":
        return _natural_shares(samples, data, entry, pool)
    require(
        samples.task == "classify" or name == "iid",
        f"The partition '{name}' divides by classes, but {data.name} has numbers to predict; use natural or iid.",
    )
    clients = data.clients
    if name in PUBLISHED:
        if name == "fedmcsa" and argument is None and data.dataset in FEDMCSA:
            spec = f"fedmcsa:{data.dataset}"
    elif clients is None:
        clients = (entry.clients if entry else None) or 100
    rows = partition(spec, samples.y.numpy()[pool], clients, data.seed, data.minimum)
    return {str(client): pool[mine] for client, mine in enumerate(rows)}, {"partition": spec}


def _natural_shares(
    samples: Samples, data: Data, entry: Entry | None, pool: np.ndarray
) -> tuple[Shares, dict[str, object]]:
    """The rows of the clients that the dataset names, without those that have fewer samples than the minimum.

    Clients without any row have an empty share, so that the federation can name them as left out.
    """
    if samples.owner is None:
        raise BadInput(f"{data.name} does not say whose its samples are; choose a partition such as 'dirichlet:0.5'.")
    owner = samples.owner[pool]
    rows = partition("natural", samples.y.numpy()[pool], len(samples.owners), data.seed, owner=owner)
    shares = {name: pool[mine] for name, mine in zip(samples.owners, rows, strict=True)}
    fewest = data.minimum if data.minimum is not None else (entry.minimum if entry else 1)
    empty = {name: mine for name, mine in shares.items() if not len(mine)}
    large = {name: mine for name, mine in shares.items() if len(mine) >= max(1, fewest)}
    dropped = len(shares) - len(empty) - len(large)
    require(large, f"No client of {data.name} has {fewest} samples; lower 'minimum'.")
    if data.clients is not None:
        require(
            data.clients <= len(large),
            f"{data.name} has {len(large)} clients with at least {max(1, fewest)} samples, not {data.clients}; "
            "lower 'clients'.",
        )
        chosen = np.sort(keyed_generator(data.seed, "clients").choice(len(large), data.clients, replace=False))
        names = list(large)
        large = {names[i]: large[names[i]] for i in chosen}
    return large | empty, {"partition": "natural"} | ({"below_minimum": dropped} if dropped else {})
