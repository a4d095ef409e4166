"""What methods that are built on another method ask of it."""

from __future__ import annotations

from fedkin.errors import require
from fedkin.parts import Method


def require_method(base: Method | None) -> None:
    """Refuse a base that is no method, but the name of one or the function that makes it."""
    require(
        base is None or isinstance(base, Method), f"A base is a method, as fk.methods.fedprox() gives, not {base!r}."
    )
