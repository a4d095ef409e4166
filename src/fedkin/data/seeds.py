"""The numpy generators of everything random about the data."""

from __future__ import annotations

from zlib import crc32

import numpy as np


def keyed_generator(seed: int, purpose: str, client: str = "") -> np.random.Generator:
    """A new generator that depends on the seed, the purpose and the client's name, and on nothing else.

    The key has the client's name, not its number, so that a client's draws do not change when other clients are added.
    """
    key = [seed, crc32(purpose.encode()), crc32(client.encode())]
    small = 0 <= seed < 2**32  # as an array the same key is read faster, which counts where clients are many
    return np.random.Generator(np.random.PCG64(np.array(key, dtype=np.uint32) if small else key))
