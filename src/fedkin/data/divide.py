"""From samples to a federation: each client's share, and what of it is held out."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedkin.data.catalogue import Entry
from fedkin.data.federation import Federation, Index
from fedkin.data.partition import partition
from fedkin.data.samples import Samples
from fedkin.data.seeds import keyed
from fedkin.data.spec import FEDMCSA, Data, partition_argument
from fedkin.errors import BadInput, require

Shares = dict[str, np.ndarray]  # client -> rows


def divide(samples: Samples, data: Data, entry: Entry | None = None) -> Federation:
    """Partition, split and cap, all keyed by the data seed. `entry` holds the defaults of a named dataset."""
    pool = np.arange(len(samples.y))
    if data.holdout == "official":
        require(
            samples.official is not None and samples.official < len(pool),
            f"{data.name} has no official test split; use holdout='split'.",
        )
        pool = pool[: samples.official]
    server, pool = taken(pool, data)
    shares, source = _shares(samples, data, entry, pool)
    left_out = tuple(name for name, rows in shares.items() if not len(rows))
    shares = {name: rows for name, rows in shares.items() if len(rows)}
    require(shares, f"No client of {data.name} has any samples.")

    test_part = 0.0 if data.holdout == "official" else data.test
    parts = {
        name: split(rows, test_part, data.validation, data.seed, name, samples.ordered) for name, rows in shares.items()
    }
    test = [held for _, _, held in parts.values()]
    common = None
    if data.holdout == "official":
        rest = np.arange(samples.official or 0, len(samples.y))
        test = proportional(list(shares.values()), samples.y.numpy(), rest, samples.classes, data.seed)
        common = torch.from_numpy(rest)
    return Federation(
        name=data.dataset,
        x=samples.x,
        y=samples.y,
        classes=samples.classes,
        train=Index.of([rows[: data.samples] for rows, _, _ in parts.values()]),
        validation=Index.of([rows for _, rows, _ in parts.values()]) if data.validation else None,
        test=Index.of(test),
        common=common,
        server=server,
        clients=tuple(shares),
        vocabulary=samples.vocabulary,
        left_out=left_out,
        source=samples.source | source,
    )


def taken(pool: np.ndarray, data: Data) -> tuple[Tensor | None, np.ndarray]:
    """The rows of the server's own validation set, where it is to have one, and what they leave of the pool."""
    if not data.server:
        return None, pool
    require(data.server < len(pool), f"{data.name} has {len(pool)} samples, so the server cannot have {data.server}.")
    chosen = keyed(data.seed, "server").choice(len(pool), data.server, replace=False)
    return torch.from_numpy(np.sort(pool[chosen])), np.delete(pool, chosen)


def split(
    rows: np.ndarray, test: float, validation: float, seed: int, client: str, ordered: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training, validation and test rows of a client, shuffled first; the first int((1 - test - validation) n) train.

    `ordered` rows are cut as they come, and shuffled after: the character to predict in one window of a text stands in
    the next windows, so that a random test set would be known from training.
    A client that has any sample trains on one at least, so that the smallest clients do not silently vanish.
    """
    gen = keyed(seed, "split", client)
    order = np.sort(rows) if ordered else gen.permutation(rows)
    count = len(order)
    # the little extra: 1 - 0.9 is a hair less than 0.1, and ten samples would otherwise become nine tenths of one
    train = max(int((1 - test - validation) * count + 1e-9), min(1, count))
    held = max(int((1 - test) * count + 1e-9), train)
    return (gen.permutation(order[:train]) if ordered else order[:train]), order[train:held], order[held:]


def proportional(
    shares: list[np.ndarray], labels: np.ndarray, rest: np.ndarray, classes: int, seed: int
) -> list[np.ndarray]:
    """The rows `rest` dealt out without repetition so that each client's have the class proportions of its share.

    For every class, its rows go to the clients by their numbers of that class: largest remainders, ties to the first.
    """
    parts: list[list[np.ndarray]] = [[] for _ in shares]
    counts = np.stack([np.bincount(labels[rows], minlength=classes) for rows in shares])  # (n, classes)
    for number in range(classes):
        rows = keyed(seed, "official", str(number)).permutation(rest[labels[rest] == number])
        if not counts[:, number].sum():
            continue
        stops = np.cumsum(apportioned(len(rows), counts[:, number]))
        for part, mine in zip(parts, np.split(rows, stops[:-1]), strict=True):
            part.append(mine)
    nothing = np.zeros(0, dtype=np.int64)
    return [np.concatenate([nothing, *part]) for part in parts]


def apportioned(seats: int, votes: np.ndarray) -> np.ndarray:
    """`seats` whole parts in proportion to `votes`, by largest remainder; exact, in whole numbers."""
    whole, remainder = np.divmod(votes * seats, votes.sum())
    more = np.argsort(-remainder, kind="stable")[: seats - int(whole.sum())]
    whole[more] += 1
    return np.asarray(whole)


def _shares(samples: Samples, data: Data, entry: Entry | None, pool: np.ndarray) -> tuple[Shares, dict[str, object]]:
    spec = data.partition or (entry.partition if entry else "natural")
    name, argument = partition_argument(spec)
    if name == "natural":
        return _natural(samples, data, entry, pool)
    clients = data.clients
    if name in ("pfedme", "pfedme-overlap", "fedmcsa"):
        if name == "fedmcsa" and argument is None and data.dataset in FEDMCSA:
            spec = f"fedmcsa:{data.dataset}"
    elif clients is None:
        clients = (entry.clients if entry else None) or 100
    rows = partition(spec, samples.y.numpy()[pool], clients, data.seed, data.minimum)
    return {str(client): pool[mine] for client, mine in enumerate(rows)}, {"partition": spec}


def _natural(samples: Samples, data: Data, entry: Entry | None, pool: np.ndarray) -> tuple[Shares, dict[str, object]]:
    if samples.owner is None:
        raise BadInput(f"{data.name} does not say whose its samples are; choose a partition such as 'dirichlet:0.5'.")
    owner = samples.owner[pool]
    rows = partition("natural", samples.y.numpy()[pool], len(samples.owners), data.seed, owner=owner)
    shares = {name: pool[mine] for name, mine in zip(samples.owners, rows, strict=True)}
    fewest = data.minimum if data.minimum is not None else (entry.minimum if entry else 1)
    empty = {name: mine for name, mine in shares.items() if not len(mine)}
    kept = {name: mine for name, mine in shares.items() if len(mine) >= max(1, fewest)}
    dropped = len(shares) - len(empty) - len(kept)
    require(kept, f"No client of {data.name} has {fewest} samples; lower 'minimum'.")
    if data.clients is not None:
        require(
            data.clients <= len(kept),
            f"{data.name} has {len(kept)} clients with at least {max(1, fewest)} samples, not {data.clients}; "
            "lower 'clients'.",
        )
        chosen = np.sort(keyed(data.seed, "clients").choice(len(kept), data.clients, replace=False))
        names = list(kept)
        kept = {names[i]: kept[names[i]] for i in chosen}
    return kept | empty, {"partition": "natural"} | ({"below_minimum": dropped} if dropped else {})
