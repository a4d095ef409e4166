"""Every field of a part is checked against its annotation, also in a part that says nothing about its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import fedkin as fk


@dataclass(frozen=True)
class Top(fk.Keep):
    """A user's part that has no check of its own."""

    k: int = 3
    weight: float = 1.0


@pytest.mark.parametrize("k", ["x", 2.5, True, None, float("nan")])
def test_a_users_part_is_checked_without_its_asking(k: Any) -> None:
    with pytest.raises(fk.BadInput, match=r"Top\.k must be a whole number, not"):
        Top(k=k)
