"""What sites told of their samples, and what most of them said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from fedkin.errors import BadInput

Told = Mapping[str, dict[str, Any]]  # by site: what its samples' `told` gave
Agreement = tuple[dict[str, Any], dict[str, str]]  # what is agreed on; and by site that does not fit, why


def most(told: Told, name: str) -> Any:
    """Return the value that most sites told under this name; of as many, the one that was told first."""
    values = [one.get(name) for one in told.values()]
    if not values:
        raise BadInput("No site is left to agree with; see what was said of each.")
    counts = Counter(map(repr, values))
    return next(value for value in values if counts[repr(value)] == max(counts.values()))
