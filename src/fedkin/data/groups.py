"""The partitions of 20 clients with two classes each that pFedMe and FedMCSA publish.

All of them cut each class's rows, in the dataset's order, in parts of random sizes; they differ in who gets which part.
The draws are those of the published scripts (numpy's legacy generator, seed 1 for data seed 0); the classes are ten.

`pfedme`: client u has classes u and u + 1 (mod 10) and the parts are disjoint: a chain whose neighbours share a class.
This is what the paper describes.

`pfedme-overlap`: what its first script did. The sizes go to classes they were not drawn for, and the place where a
client starts in its class is a truth value, so that all clients start at row 0 or 1 and share most of their images, and
one client's test images are in another's training set. The script also pairs images and labels one off where two
classes meet, which gives most clients one wrongly labelled image; here it keeps its own label, since a sample has one
label for all clients.

`fedmcsa`: what FedMCSA's three scripts do. `mnist`: classes 2u and 2u + 1 (mod 10), disjoint: five groups of four
clients, which flatters methods that look for similar clients. `fashion_mnist`: the chain's classes, but with the sizes
of 20 parts each of classes 0 and 1. `cifar10`: the chain's classes with sizes drawn for others; a part that no longer
fits is left out, so that some clients have one class. (That script normalises channels; here pixels are scaled.)
"""

from __future__ import annotations

import numpy as np

from fedkin.errors import require

CLIENTS, EACH, CLASSES = 20, 2, 10


def twenty(name: str, labels: np.ndarray, clients: int | None, seed: int, generator: str = "mnist") -> list[np.ndarray]:
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
    """Random sizes of the parts of every class, listed part 0 of all classes, part 1 of all classes, ..."""
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
    parts = np.array(_sizes(rows, 4, stream)).reshape(4, CLASSES)
    cut = [np.split(of, np.cumsum(parts[:-1, number])) for number, of in enumerate(rows)]
    taken = [0] * CLASSES
    shares = []
    for client in range(CLIENTS):
        mine = []
        for number in _wanted(client, 1):
            mine.append(cut[number][taken[number]])
            taken[number] += 1
        shares.append(np.concatenate(mine))
    return shares


def _overlap(rows: list[np.ndarray], labels: np.ndarray, stream: np.random.RandomState) -> list[np.ndarray]:
    sizes = iter(_sizes(rows, 4, stream))
    # the script's leftover variable: whether row l is of the last class; it is true for good once l was used
    start = (labels[:CLASSES] == CLASSES - 1).astype(int)
    shares = []
    for client in range(CLIENTS):
        mine = []
        for number in _wanted(client, 1):
            mine.append(rows[number][start[number] : next(sizes)])
            start[number] = 1
        shares.append(np.concatenate(mine))
    return shares


def _in_turn(rows: list[np.ndarray], sizes: list[int], step: int, last_fits: bool) -> list[np.ndarray]:
    """Clients take the sizes in order, each from where its class was left; what does not fit is not taken."""
    left, start = iter(sizes), [0] * CLASSES
    shares = []
    for client in range(CLIENTS):
        mine = []
        for number in _wanted(client, step):
            stop = start[number] + next(left)
            if stop < len(rows[number]) or (last_fits and stop == len(rows[number])):
                mine.append(rows[number][start[number] : stop])
                start[number] = stop
        shares.append(np.concatenate(mine) if mine else np.zeros(0, dtype=np.int64))
    return shares


def _wanted(client: int, step: int) -> list[int]:
    return [(step * client + j) % CLASSES for j in range(EACH)]
