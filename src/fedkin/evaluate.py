"""Which kinds of accuracy a method can be scored by."""

from __future__ import annotations

from fedkin.parts import Method

KINDS = ("post", "global", "recv", "test")  # of accuracy: of which model on whose samples, as `round.scores` says


def kinds_of(method: Method, common: bool) -> tuple[str, ...]:
    """The kinds of accuracy that this method has. `common`: the data have a test set that all clients share."""
    one = method.collaborate.gives.common_model
    has = {"post": True, "global": one, "recv": method.collaborate.needs.current, "test": one and common}
    return tuple(kind for kind in KINDS if has[kind])
