"""Who gets which samples: pure functions of the labels, the number of clients and a seed.

Every function returns one array of row numbers a client. Images never pass through here.
"""

from __future__ import annotations

import heapq

import numpy as np

from fedkin.data import groups
from fedkin.data.seeds import keyed
from fedkin.data.spec import partition_argument
from fedkin.errors import BadInput, require

MINIMUM = 10  # samples of a dirichlet client, where there are enough


def partition(
    spec: str,
    labels: np.ndarray,
    clients: int | None,
    seed: int,
    minimum: int | None = None,
    owner: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Divide the rows of `labels` as `spec` says; `owner` numbers the natural clients, where there are some.

    `clients` may be None for natural clients, whose number the data knows, and for the partitions of 20 clients.
    """
    name, argument = partition_argument(spec)
    if name == "natural":
        require(owner is not None, "The partition 'natural' needs samples that say whose they are.")
        return natural(np.asarray(owner), clients or 0)
    if name in ("pfedme", "pfedme-overlap", "fedmcsa"):
        return groups.twenty(name, labels, clients, seed, generator=str(argument or "mnist"))
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
    """Equal parts of a shuffled whole."""
    return np.array_split(keyed(seed, "iid").permutation(count), clients)


def natural(owner: np.ndarray, clients: int = 0) -> list[np.ndarray]:
    """The rows of client 0, of client 1, ...; a client below `clients` without rows gets an empty array."""
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.cumsum(np.bincount(owner, minlength=clients))[:-1])


def dirichlet(
    labels: np.ndarray, clients: int, alpha: float, seed: int, minimum: int | None = None
) -> list[np.ndarray]:
    """Every class is divided by a draw from Dirichlet(alpha): a small alpha gives clients few classes.

    The minimum is reached by `repaired`, not by drawing again, which may never end.
    """
    fewest = min(MINIMUM, len(labels) // clients) if minimum is None else minimum
    require(
        fewest * clients <= len(labels),
        f"{clients} clients with at least {fewest} samples each need {fewest * clients} samples, but there are "
        f"{len(labels)}; lower 'minimum' or 'clients'.",
    )
    gen = keyed(seed, "dirichlet")
    order = gen.permutation(len(labels))
    draws = np.random.default_rng(int(gen.integers(2**32)))
    parts = [divided(order[labels[order] == label], clients, alpha, draws) for label in np.unique(labels)]
    shares = [np.concatenate(own) for own in zip(*parts, strict=True)]
    return repaired(shares, labels, fewest, gen)


def divided(rows: np.ndarray, clients: int, alpha: float, draws: np.random.Generator) -> list[np.ndarray]:
    """One class among the clients, cut at the cumulative shares of a Dirichlet draw: as Flower's `DirichletPartitioner`
    does it, whose import brings plotting libraries and takes seconds."""
    cuts = (np.cumsum(draws.dirichlet(np.full(clients, alpha))) * len(rows)).astype(int)[:-1]
    return np.split(rows, cuts)


def repaired(shares: list[np.ndarray], labels: np.ndarray, minimum: int, gen: np.random.Generator) -> list[np.ndarray]:
    """Give every client at least `minimum` samples by moving single ones, of random classes, from the richest client.

    Unlike drawing again this always ends, and it leaves the clients alone that were drawn well.
    """
    poor = [i for i, rows in enumerate(shares) if len(rows) < minimum]
    richest = [(-len(rows), i) for i, rows in enumerate(shares) if len(rows) >= minimum]
    heapq.heapify(richest)
    purses: dict[int, list[list[int]]] = {}  # of those who give: their rows, a list a class
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

    All classes are held by equally many clients (or one more), and which clients share a class is random. Neither is so
    in Flower's `PathologicalPartitioner`: its random mode is uneven, its deterministic one makes a chain of clients.
    """
    known = np.unique(labels)
    require(
        each <= len(known),
        f"A client cannot have {each} classes where there are {len(known)}; lower the argument of 'classes'.",
    )
    gen = keyed(seed, "classes")
    holders: list[list[int]] = [[] for _ in known]
    for client in range(clients):
        held = np.array([len(clients_of) for clients_of in holders])
        least = np.lexsort((gen.random(len(known)), held))
        for number in least[:each]:
            holders[number].append(client)
    shares: list[list[np.ndarray]] = [[] for _ in range(clients)]
    for number, clients_of in zip(known, holders, strict=True):
        rows = gen.permutation(np.flatnonzero(labels == number))
        for client, part in zip(clients_of, np.array_split(rows, max(1, len(clients_of))), strict=False):
            shares[client].append(part)
    return [np.concatenate(parts) for parts in shares]


def shards(labels: np.ndarray, clients: int, each: int, seed: int) -> list[np.ndarray]:
    """McMahan's way: the rows sorted by label are cut in equal shards, and every client gets `each` random ones.

    Where the rows do not divide evenly some shards have one row more, so that none is lost as in Flower's partitioner.
    """
    require(
        clients * each <= len(labels),
        f"{clients} clients with {each} shards each need {clients * each} samples, but there are {len(labels)}.",
    )
    gen = keyed(seed, "shards")
    shuffled = gen.permutation(len(labels))
    pieces = np.array_split(shuffled[np.argsort(labels[shuffled], kind="stable")], clients * each)
    return [np.concatenate([pieces[i] for i in dealt]) for dealt in gen.permutation(len(pieces)).reshape(clients, each)]
