"""Randomness of the data: a generator for a purpose and a client, never one that is handed around."""

from __future__ import annotations

from zlib import crc32

import numpy as np


def keyed(seed: int, purpose: str, client: str = "") -> np.random.Generator:
    """Named, not numbered: a client's draws stay the same whichever other clients there are."""
    return np.random.default_rng([seed, crc32(purpose.encode()), crc32(client.encode())])
