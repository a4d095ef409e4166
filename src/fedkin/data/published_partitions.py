"""The partitions of pFedMe's and FedMCSA's published scripts: 20 clients with two of ten classes each.

All of them cut the rows of each class, in the dataset's order, into parts of random sizes. They differ in which client
gets which part. The draws are those of the scripts (numpy's legacy generator, with seed 1 for data seed 0).

`pfedme` is what the paper describes. Client u has the classes u and u + 1 (mod 10), so that the clients form a chain
whose neighbours share a class. The parts are disjoint.

`pfedme-overlap` is what pFedMe's first script does. The sizes go to classes they were not drawn for. The row where a
client starts in its class is a truth value, so all clients start at row 0 or 1 and share most of their images, and test
images of one client are training images of another. The script also shifts labels by one image where two classes meet,
which gives most clients one wrong label. This error is not repeated, since here a sample has one label for all clients.

`fedmcsa` is what FedMCSA's three scripts do. `mnist`: client u has the classes 2u and 2u + 1 (mod 10), in disjoint
parts. This makes five groups of four clients, which favours methods that look for similar clients. `fashion_mnist`: the
classes of the chain, with the sizes of 20 parts of class 0 and 20 parts of class 1. `cifar10`: the classes of the
chain, with sizes drawn for other classes; a part that does not fit is left out, so some clients have one class only.
(That script normalises channels; here pixels are scaled.)
"""

from __future__ import annotations

import numpy as np

from fedkin.errors import require

PUBLISHED = ("pfedme", "pfedme-overlap", "fedmcsa")
CLIENTS, EACH, CLASSES = 20, 2, 10  # EACH: classes of a client


def published_partition(
    name: str, labels: np.ndarray, clients: int | None, seed: int, generator: str = "mnist"
) -> list[np.ndarray]:
    """The rows of each client. `name` is one of `PUBLISHED`, and `generator` chooses one of FedMCSA's three scripts."""
    require(
        clients in (None, CLIENTS), f"The partition '{name}' has {CLIENTS} clients, not {clients}; leave 'clients' out."
    )
    rows = [np.flatnonzero(labels == number) for number in range(CLASSES)]
    complete = (
        len(labels) > 0 and labels.min() >= 0 and labels.max() < CLASSES and all(len(of) > CLIENTS for of in rows)
    )
    require(complete, f"The partition '{name}' needs {CLASSES} classes with more than {CLIENTS} samples each.")
    stream = np.random.RandomState(seed + 1)
    if name == "pfedme":
        return _chain(rows, stream)
    if name == "pfedme-overlap":
        return _overlap(rows, labels, stream)
    if generator == "fashion_mnist":
        return _in_turn(rows, _sizes(rows[:2], CLIENTS, stream), step=1, last_fits=False)
    return _in_turn(rows, _sizes(rows, 4, stream), step=2 if generator == "mnist" else 1, last_fits=True)


def _sizes(rows: list[np.ndarray], parts: int, stream: np.random.RandomState) -> list[int]:
    """Random sizes of `parts` parts of every class: part 0 of all classes, then part 1 of all classes, and so on."""
    drawn = []
    for of in rows:
        left, sizes = len(of), []
        for _ in range(parts - 1):
            low, high = left // (parts + 1), left // 2
            sizes.append(int(stream.randint(low, max(high, low + 1))))
            left -= sizes[-1]
        drawn.append([*sizes, left])
    return np.array(drawn).T.ravel().tolist()


def _chain(rows: list[np.ndarray], stream: np.random.RandomState) -> list[np.ndarray]:
    """The partition `pfedme`: every client takes the next part of each of its classes."""
    parts = np.array(_sizes(rows, 4, stream)).reshape(4, CLASSES)
    cut = [np.split(of, np.cumsum(parts[:-1, number])) for number, of in enumerate(rows)]
    taken = [0] * CLASSES
    shares = []
    for client in range(CLIENTS):
        mine = []
        for number in _classes_of(client, 1):
            mine.append(cut[number][taken[number]])
            taken[number] += 1
        shares.append(np.concatenate(mine))
    return shares


def _overlap(rows: list[np.ndarray], labels: np.ndarray, stream: np.random.RandomState) -> list[np.ndarray]:
    """The partition `pfedme-overlap`: every client takes the first rows of each of its classes."""
    sizes = iter(_sizes(rows, 4, stream))
    # the script uses a leftover variable as the start: whether row l is of the last class, and true after l was used
    start = (labels[:CLASSES] == CLASSES - 1).astype(int)
    shares = []
    for client in range(CLIENTS):
        mine = []
        for number in _classes_of(client, 1):
            mine.append(rows[number][start[number] : next(sizes)])
            start[number] = 1
        shares.append(np.concatenate(mine))
    return shares


def _in_turn(rows: list[np.ndarray], sizes: list[int], step: int, last_fits: bool) -> list[np.ndarray]:
    """The partition `fedmcsa`: clients take parts of the sizes in order, each from the next free row of its class.

    A part that does not fit into its class is not taken. `last_fits` says whether a part may end at the class's last
    row.
    """
    left, start = iter(sizes), [0] * CLASSES
    shares = []
    for client in range(CLIENTS):
        mine = []
        for number in _classes_of(client, step):
            stop = start[number] + next(left)
            if stop < len(rows[number]) or (last_fits and stop == len(rows[number])):
                mine.append(rows[number][start[number] : stop])
                start[number] = stop
        shares.append(np.concatenate(mine) if mine else np.zeros(0, dtype=np.int64))
    return shares


def _classes_of(client: int, step: int) -> list[int]:
    """The classes of a client; `step` is the distance between the first classes of neighbours."""
    return [(step * client + j) % CLASSES for j in range(EACH)]
