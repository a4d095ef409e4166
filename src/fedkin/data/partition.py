"""Partitions: each function divides the rows of a dataset among clients.

The functions are pure and see only labels, the number of clients and a seed, never the features. Each returns a list
with one array of row numbers for each client.
"""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np

from fedkin.data.notation import partition_argument
from fedkin.data.published_partitions import PUBLISHED, published_partition
from fedkin.data.seeds import keyed_generator
from fedkin.errors import BadInput, require

MINIMUM = 10  # the fewest samples of a dirichlet client, if there are enough for all clients


def partition(
    spec: str,
    labels: np.ndarray,
    clients: int | None,
    seed: int,
    minimum: int | None = None,
    owner: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Divide the rows of `labels` as `spec` says, for example "dirichlet:0.5".

    `owner` has the number of each row's natural client, and only the partition "natural" needs it. `clients` may be
    None for natural clients, whose number follows from `owner`, and for the published partitions of 20 clients.
    `minimum` is the fewest samples of a client, and only "dirichlet" uses it.
    """
    name, argument = partition_argument(spec)
    if name == "natural":
        require(owner is not None, "The partition 'natural' needs samples that say whose they are.")
        return natural(np.asarray(owner), clients or 0)
    if name in PUBLISHED:
        return published_partition(name, labels, clients, seed, generator=str(argument or "mnist"))
    if clients is None:
        raise BadInput(f"The partition '{name}' needs a number of clients.")
    require(clients >= 1, f"The number of clients must be at least 1, not {clients}.")
    require(
        clients <= len(labels),
        f"{clients} clients cannot share {len(labels)} samples; take at most {len(labels)} clients.",
    )
    if name == "iid":
        return iid(len(labels), clients, seed)
    if name == "dirichlet":
        return dirichlet(labels, clients, float(argument or 0), seed, minimum)
    if name == "classes":
        return classes(labels, clients, int(argument or 0), seed)
    return shards(labels, clients, int(argument or 0), seed)


def iid(count: int, clients: int, seed: int) -> list[np.ndarray]:
    """The rows are shuffled and cut into equal parts."""
    return np.array_split(keyed_generator(seed, "iid").permutation(count), clients)


def natural(owner: np.ndarray, clients: int = 0) -> list[np.ndarray]:
    """Each client gets the rows it owns. A client without rows, numbered below `clients`, gets an empty array."""
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=clients)).tolist()
    return [order[start:end] for start, end in pairwise([0, *ends])]  # np.split takes a second for 100,000 clients


def dirichlet(
    labels: np.ndarray, clients: int, alpha: float, seed: int, minimum: int | None = None
) -> list[np.ndarray]:
    """Every class is divided by a draw from Dirichlet(alpha). A small alpha gives a client few classes.

    `filled_to_minimum` then gives every client the minimum of samples.
    """
    fewest = min(MINIMUM, len(labels) // clients) if minimum is None else minimum
    require(
        fewest * clients <= len(labels),
        f"{clients} clients with at least {fewest} samples each need {fewest * clients} samples, but there are "
        f"{len(labels)}; lower 'minimum' or 'clients'.",
    )
    gen = keyed_generator(seed, "dirichlet")
    order = gen.permutation(len(labels))
    draws = np.random.default_rng(int(gen.integers(2**32)))
    parts = [dirichlet_parts(order[labels[order] == label], clients, alpha, draws) for label in np.unique(labels)]
    shares = [np.concatenate(own) for own in zip(*parts, strict=True)]
    return filled_to_minimum(shares, labels, fewest, gen)


def dirichlet_parts(rows: np.ndarray, clients: int, alpha: float, draws: np.random.Generator) -> list[np.ndarray]:
    """The rows of one class, cut at the cumulative shares of a Dirichlet draw.

    Flower's `DirichletPartitioner` does the same, but its import brings plotting libraries and takes seconds.
    """
    cuts = (np.cumsum(draws.dirichlet(np.full(clients, alpha))) * len(rows)).astype(int)[:-1]
    return np.split(rows, cuts)


def filled_to_minimum(
    shares: list[np.ndarray], labels: np.ndarray, minimum: int, gen: np.random.Generator
) -> list[np.ndarray]:
    """Give every client at least `minimum` samples: move single samples of random classes from the richest client.

    Drawing all shares again might never end. Moving samples always ends, and most clients keep the share they drew.
    """
    poor = [i for i, rows in enumerate(shares) if len(rows) < minimum]
    richest = [(-len(rows), i) for i, rows in enumerate(shares) if len(rows) >= minimum]
    heapq.heapify(richest)
    purses: dict[int, list[list[int]]] = {}  # for each client that gives: the rows it still has, a list for each class
    after = list(shares)
    for i in poor:
        taken = []
        for _ in range(minimum - len(shares[i])):
            size, giver = heapq.heappop(richest)
            if giver not in purses:
                mine = labels[shares[giver]]
                purses[giver] = [shares[giver][mine == label].tolist() for label in np.unique(mine)]
            purse = purses[giver]
            rows = purse[gen.integers(len(purse))]
            taken.append(rows.pop(int(gen.integers(len(rows)))))
            if not rows:
                purse.remove(rows)
            heapq.heappush(richest, (size + 1, giver))
        after[i] = np.append(shares[i], np.array(taken, dtype=np.int64))
    for giver, purse in purses.items():
        after[giver] = np.concatenate([np.array(rows, dtype=np.int64) for rows in purse])
    return after


def classes(labels: np.ndarray, clients: int, each: int, seed: int) -> list[np.ndarray]:
    """Every client holds `each` classes, and the clients that hold a class get equal parts of it.

    All classes have the same number of holders, or one more, and which clients share a class is random. Flower's
    `PathologicalPartitioner` cannot do both: its random mode is uneven, and its deterministic mode makes a chain of
    clients.
    """
    present = np.unique(labels)
    require(
        each <= len(present),
        f"A client cannot have {each} classes where there are {len(present)}; lower the argument of 'classes'.",
    )
    gen = keyed_generator(seed, "classes")
    holders: list[list[int]] = [[] for _ in present]
    for client in range(clients):
        held = np.array([len(clients_of) for clients_of in holders])
        least = np.lexsort((gen.random(len(present)), held))
        for number in least[:each]:
            holders[number].append(client)
    shares: list[list[np.ndarray]] = [[] for _ in range(clients)]
    for number, clients_of in zip(present, holders, strict=True):
        rows = gen.permutation(np.flatnonzero(labels == number))
        for client, part in zip(clients_of, np.array_split(rows, max(1, len(clients_of))), strict=False):
            shares[client].append(part)
    return [np.concatenate(parts) for parts in shares]


def shards(labels: np.ndarray, clients: int, each: int, seed: int) -> list[np.ndarray]:
    """As in McMahan's paper, the rows sorted by label are cut into equal shards, and every client gets `each` shards.

    If the rows do not divide evenly, some shards have one row more. Flower's partitioner would lose those rows.
    """
    require(
        clients * each <= len(labels),
        f"{clients} clients with {each} shards each need {clients * each} samples, but there are {len(labels)}.",
    )
    gen = keyed_generator(seed, "shards")
    shuffled = gen.permutation(len(labels))
    pieces = np.array_split(shuffled[np.argsort(labels[shuffled], kind="stable")], clients * each)
    return [np.concatenate([pieces[i] for i in dealt]) for dealt in gen.permutation(len(pieces)).reshape(clients, each)]
