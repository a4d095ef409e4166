"""Holds Python's garbage collection back while many objects are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect no garbage until the block, or the decorated function, ends.

    Where there are 100,000 clients, the collector looks at their lists again and again, for a quarter of the time.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
