"""Six clients, of which one has a name that must be escaped."""

from __future__ import annotations

import numpy as np
import pytest

import fedkin as fk


@pytest.fixture(scope="session")
def clinics() -> fk.Federation:
    gen = np.random.default_rng(0)
    clients = {name: (gen.normal(size=(12, 5)), gen.integers(0, 3, 12)) for name in ("<b>&", *"abcde")}
    return fk.from_clients(clients, name="clinics")
