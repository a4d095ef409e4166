"""A table or figure of a paper as something to run: its rows as experiments, and what was published beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fedkin.errors import require
from fedkin.runs.experiment import Experiment

STATISTICS = ("last10", "best")  # the columns that are compared


@dataclass(frozen=True)
class Target:
    """An accuracy to be reached. The rounds and model uploads until then are counted; `published` has them by row.

    The accuracy is `value` or, with `over`, so much more than that row reaches (its last ten rounds, mean over seeds).
    """

    value: float
    over: str | None = None
    published: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Preset:
    """A table of a paper.

    `rows` are experiments named by their methods; all are compared by the micro accuracy of one `kind`. `published` has
    the printed numbers of a row, in percent, under 'last10' and 'best'. `note` is what a reader must know to compare.
    """

    name: str
    about: str
    rows: tuple[Experiment, ...]
    seeds: tuple[int, ...]
    kind: str
    published: Mapping[str, Mapping[str, float]]
    targets: tuple[Target, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        names = {row.method.name for row in self.rows}
        said = {
            *self.published,
            *(name for t in self.targets for name in (*t.published, *([t.over] if t.over else []))),
        }
        require(said <= names, f"The preset {self.name} has no row {', '.join(sorted(said - names))}.")
        scored = all(row.evaluate_every == 1 for row in self.rows)
        require(scored or not self.targets, f"The preset {self.name} has targets, so every round must be scored.")

    def experiments(self, rounds: int | None = None) -> list[Experiment]:
        """The rows, all with another number of rounds if one is given."""
        return [replace(row, rounds=row.rounds if rounds is None else rounds) for row in self.rows]
