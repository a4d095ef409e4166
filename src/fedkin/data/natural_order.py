"""Sorts names as people do: site 2 before site 10."""

from __future__ import annotations

import re
from collections.abc import Iterable

NUMBER = re.compile(r"(\d+)")


def natural_key(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """A key that compares the numbers in a name as numbers, and the rest as text without regard to capitals."""
    parts = NUMBER.split(name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part.casefold()) for part in parts if part], name


def natural_order(names: Iterable[str]) -> list[str]:
    """The names, sorted as people do."""
    return sorted(names, key=natural_key)
