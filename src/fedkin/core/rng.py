"""Random streams. The key of a stream says what the stream is for: (seed, purpose, round, client).

There is no global generator. A stream depends on its key only, never on the engine, the worker or the client's position
in a chunk. Two methods with the same seed therefore see the same clients and the same batches.
"""

from hashlib import blake2b

import numpy as np
import torch

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # splitmix64's increment, 2^64 divided by the golden ratio


def key(seed: int, purpose: str, round: int = 0, client: int | None = None) -> int:
    """A 64-bit number that stands for this use of randomness only."""
    base = int.from_bytes(blake2b(f"{seed}/{purpose}/{round}".encode(), digest_size=8).digest(), "little")
    return base if client is None else int(keys(seed, purpose, round, np.array([client]))[0])


def keys(seed: int, purpose: str, round: int, clients: np.ndarray) -> np.ndarray:
    """The keys of many clients."""  # (m,) uint64
    base = np.uint64(key(seed, purpose, round))
    return mixed(base ^ mixed(clients.astype(np.uint64) + GOLDEN))


def generator(seed: int, purpose: str, round: int = 0, client: int | None = None) -> torch.Generator:
    """A torch generator for this use of randomness only."""
    return torch.Generator().manual_seed(key(seed, purpose, round, client) >> 1)


def bits(streams: np.ndarray, start: int, count: int) -> np.ndarray:
    """The draws number `start` to `start + count - 1` of each stream.

    `streams` has the streams' keys. The generator is splitmix64, in which each draw depends on its number only.
    """  # (m, count) uint64
    counter = np.arange(start + 1, start + count + 1, dtype=np.uint64) * GOLDEN
    return mixed(streams[:, None] + counter)


def uniform(streams: np.ndarray, start: int, count: int) -> np.ndarray:
    """The draws of `bits` as numbers in [0, 1)."""  # (m, count) float64
    found: np.ndarray = (bits(streams, start, count) >> np.uint64(11)).astype(np.float64)
    found *= 2.0**-53
    return found


def mixed(z: np.ndarray) -> np.ndarray:
    """The last step of splitmix64: a bijection of 64-bit numbers in which every input bit affects every output bit."""
    result: np.ndarray = z ^ (z >> np.uint64(30))
    result *= np.uint64(0xBF58476D1CE4E5B9)  # from here on in place
    result ^= result >> np.uint64(27)
    result *= np.uint64(0x94D049BB133111EB)
    result ^= result >> np.uint64(31)
    return result
