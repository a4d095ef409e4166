"""Chooses the rows that are held out: each client's validation and test rows, and the server's validation set."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedkin.data.seeds import keyed_generator
from fedkin.data.spec import Data
from fedkin.errors import require


def server_rows(pool: np.ndarray, data: Data) -> tuple[Tensor | None, np.ndarray]:
    """The rows of the server's own validation set, None if `data` asks for none, and the remaining rows of `pool`."""
    if not data.server:
        return None, pool
    require(data.server < len(pool), f"{data.name} has {len(pool)} samples, so the server cannot have {data.server}.")
    chosen = keyed_generator(data.seed, "server").choice(len(pool), data.server, replace=False)
    return torch.from_numpy(np.sort(pool[chosen])), np.delete(pool, chosen)


def split(
    rows: np.ndarray,
    test: float,
    validation: float,
    seed: int,
    client: str,
    ordered: bool = False,
    number: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A client's training, validation and test rows. `test` and `validation` are fractions of its rows.

    The rows are shuffled, and the first int((1 - test - validation) n) of them are the training rows. `ordered` rows
    are cut in their own order, and only the training rows are shuffled: the character to predict after one window of a
    text is part of the next windows, so a random test set would share its answers with the training set.
    `number` is that of the division: each number is another shuffle. Ordered rows have one division only.
    A client with any sample gets at least one training row, so that the smallest clients do not vanish silently.
    """
    require(not (ordered and number), "A text is cut in its own order, so it has one split only.")
    gen = keyed_generator(seed, f"split {number}" if number else "split", client)
    order = np.sort(rows) if ordered else gen.permutation(rows)
    count = len(order)
    # 1e-9: in floats 1 - 0.9 is slightly less than 0.1, and a tenth of ten samples would be none
    train = max(int((1 - test - validation) * count + 1e-9), min(1, count))
    held = max(int((1 - test) * count + 1e-9), train)
    return (gen.permutation(order[:train]) if ordered else order[:train]), order[train:held], order[held:]


def dealt_by_class(
    shares: list[np.ndarray], labels: np.ndarray, rest: np.ndarray, classes: int, seed: int
) -> list[np.ndarray]:
    """The rows `rest` divided among the clients without repetition, in the class proportions of each client's share.

    The rows of each class are divided in proportion to the clients' numbers of samples of that class, as `apportioned`
    does it. A class that no client has is not dealt.
    """
    parts: list[list[np.ndarray]] = [[] for _ in shares]
    counts = np.stack([np.bincount(labels[rows], minlength=classes) for rows in shares])  # (n, classes)
    for number in range(classes):
        rows = keyed_generator(seed, "official", str(number)).permutation(rest[labels[rest] == number])
        if not counts[:, number].sum():
            continue
        stops = np.cumsum(apportioned(len(rows), counts[:, number]))
        for part, mine in zip(parts, np.split(rows, stops[:-1]), strict=True):
            part.append(mine)
    nothing = np.zeros(0, dtype=np.int64)
    return [np.concatenate([nothing, *part]) for part in parts]


def apportioned(seats: int, votes: np.ndarray) -> np.ndarray:
    """Whole numbers that sum to `seats`, in proportion to `votes`, by the method of largest remainders.

    The arithmetic is exact, in whole numbers. Of equal remainders the first counts as the largest.
    """
    whole, remainder = np.divmod(votes * seats, votes.sum())
    more = np.argsort(-remainder, kind="stable")[: seats - int(whole.sum())]
    whole[more] += 1
    return np.asarray(whole)
