"""How much is tried for a method, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from fedkin.errors import require

Settings = dict[str, str]  # by the full path of a field, as --set takes them


@dataclass(frozen=True)
class Budget:
    """How much is tried, and how: the same for every method that is tuned with it."""

    trials: int = 20
    prune: bool = True  # whether trials that fall behind are given up
    grid: bool = False  # every combination of listed values, in place of a search
    average: str = "macro"
    seed: int = 0  # of the settings that are tried

    def __post_init__(self) -> None:
        for name, least in (("trials", 1), ("seed", 0)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**31
            require(whole, f"{name} must be a whole number of at least {least} and below 2**31, not {value!r}.")


@dataclass(frozen=True)
class Tried:
    """A trial: its settings, and what came of them by validation samples."""

    number: int  # from 1, in the order in which they were drawn
    settings: Settings
    state: str  # done, given up, failed or begun
    value: float | None
    round: int | None  # the last round that was scored
    why: str = ""
