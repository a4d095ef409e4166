"""How much privacy releases have cost: (epsilon, delta) by the accountant of Opacus."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec

import numpy as np

from fedkin.errors import require

ORDERS = (1 + np.geomspace(1e-3, 1e7, 2000)).tolist()  # of Renyi divergence, of which the best is taken


def check_installed() -> None:
    """Refuse to begin where the accountant is not installed."""
    there = find_spec("opacus") is not None
    require(there, "--dp counts epsilon by Opacus, which is not installed; install it with: pip install 'fedkin[dp]'.")


def epsilon(releases: Mapping[float, int], delta: float, replaced: bool = False) -> float:
    """Return the epsilon that a client has spent by so many releases at each noise, all of its releases together.

    It bounds what the others can tell from a client that changes nothing; with `replaced`, from the same client with
    any other data, whose update may lie on the other side of the ball, so that the noise counts half. Every release is
    counted in full: clients are not drawn by chance and in secret, so nothing is gained by who takes part.
    """
    found = tuple(sorted((noise / 2 if replaced else noise, count) for noise, count in releases.items() if count))
    return spent(found, delta) if found else 0.0


@lru_cache(maxsize=4096)
def spent(releases: tuple[tuple[float, int], ...], delta: float) -> float:
    """Return the epsilon of the composed Gaussian mechanisms, of (noise, count) each."""
    check_installed()
    from opacus.accountants import RDPAccountant

    accountant = RDPAccountant()
    accountant.history = [(noise, 1.0, count) for noise, count in releases]
    return max(0.0, float(accountant.get_epsilon(delta, alphas=ORDERS)))
