"""A table or figure of a paper as data: its cells, what was published in each of them, and what the paper claims.

A preset has no code of its own. `reproduce/` plays its runs, reads the numbers of its cells and judges its claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fedkin.data import Data
from fedkin.errors import require
from fedkin.presets.claims import Claim
from fedkin.presets.readings import Reading
from fedkin.runs.experiment import Experiment

SCALES = ("small", "full")


@dataclass(frozen=True)
class Cell:
    """One number of a table: what is read of which run.

    `published` is what the paper prints, `spread` what it prints behind ±. With `less` the number is a difference: how
    much the reading of `experiment` is above that of `less`, which may have a reading of its own. With `candidates` the
    number is that of the candidate with the best validation accuracy, of which `experiment` is the first.
    """

    row: str
    column: str
    experiment: Experiment
    reading: Reading
    published: float | None = None
    spread: float | None = None
    less: Experiment | None = None
    less_reading: Reading | None = None
    candidates: tuple[Experiment, ...] = ()
    seeds: int | None = None  # so many repetitions, where that is fewer than the preset has


@dataclass(frozen=True)
class Curve:
    """A line of a figure: a number over the rounds of a run."""

    name: str
    panel: str
    experiment: Experiment
    reading: Reading


@dataclass(frozen=True)
class Preset:
    """A table or figure of a paper at one scale.

    Repetition k has the seed k, the data of seed k or their split k, as `vary` says. `title` is what the table or
    figure shows. `note` says what a reader must know to compare: for a small scale, what was made smaller.
    """

    name: str  # paper/place, as in fedmcsa/table2
    title: str
    cells: tuple[Cell, ...]
    claims: tuple[Claim, ...] = ()
    curves: tuple[Curve, ...] = ()
    scale: str = "full"
    seeds: int = 3
    vary: tuple[str, ...] = ("seed",)  # what differs between repetitions: seed, data (its partition), split
    overlap: float = 0.0  # of repetitions that are splits of the same samples: test samples over training samples
    note: str = ""
    axis: str = ""  # what the columns are, where they are steps of one number: the figure then draws lines

    def __post_init__(self) -> None:
        require(self.scale in SCALES, f"The scale of a preset is small or full, not {self.scale!r}.")
        require(self.cells, f"The preset {self.name} has no cells.")
        places = [(cell.row, cell.column) for cell in self.cells]
        require(len(set(places)) == len(places), f"The preset {self.name} has a cell twice.")
        for claim in self.claims:
            for row, column in claim.places():
                require(
                    (row, column) in places, f"The preset {self.name} claims something of no cell: {row}, {column}."
                )

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(cell.column for cell in self.cells))

    def of(self, column: str) -> list[Cell]:
        """The cells of a column."""
        return [cell for cell in self.cells if cell.column == column]

    @property
    def paper(self) -> str:
        return self.name.partition("/")[0]

    @property
    def place(self) -> str:
        return self.name.partition("/")[2]

    def repetitions(self, cell: Cell | Curve) -> int:
        """How many repetitions a cell has."""
        return min(self.seeds, getattr(cell, "seeds", None) or self.seeds)

    def repeated(self, experiment: Experiment, k: int) -> Experiment:
        """Repetition k of an experiment."""
        data = experiment.data
        assert isinstance(data, Data)
        if "data" in self.vary:
            data = replace(data, seed=data.seed + k)
        if "split" in self.vary:
            data = replace(data, split=data.split + k)
        return replace(experiment, seed=k if "seed" in self.vary else 0, data=data)

    def experiments(self) -> Iterator[tuple[str, Experiment]]:
        """Every run of the preset, each once, after the words that a progress display calls it by."""
        seen: set[str] = set()
        every: list[Cell | Curve] = [*self.cells, *self.curves]
        for cell in every:
            column = cell.column if isinstance(cell, Cell) else cell.panel
            for k in range(self.repetitions(cell)):
                for one in needed(cell):
                    found = self.repeated(one, k)
                    key = repr(found.described())
                    if key not in seen:
                        seen.add(key)
                        yield f"{found.method.name}, {column}, seed {k}", found

    def with_columns(self, columns: Sequence[str]) -> Preset:
        """The preset with these columns only, and the cells that their targets are set by; without its claims."""
        bases = {cell.reading.over for cell in self.cells if cell.column in columns}
        cells = tuple(cell for cell in self.cells if cell.column in columns or (cell.row, cell.column) in bases)
        curves = tuple(curve for curve in self.curves if curve.panel in columns)
        return replace(self, cells=cells, curves=curves, claims=())

    def shortened(self, seeds: int | None = None, rounds: int | None = None) -> Preset:
        """The preset with other numbers of repetitions and rounds; None leaves them as they are."""

        def cut(experiment: Experiment) -> Experiment:
            return experiment if rounds is None else replace(experiment, rounds=rounds)

        cells = tuple(
            replace(
                cell,
                experiment=cut(cell.experiment),
                less=None if cell.less is None else cut(cell.less),
                candidates=tuple(map(cut, cell.candidates)),
            )
            for cell in self.cells
        )
        curves = tuple(replace(curve, experiment=cut(curve.experiment)) for curve in self.curves)
        return replace(self, cells=cells, curves=curves, seeds=self.seeds if seeds is None else seeds)


def needed(cell: Cell | Curve) -> list[Experiment]:
    """The experiments that a cell or a curve reads."""
    if isinstance(cell, Curve):
        return [cell.experiment]
    return [cell.experiment, *cell.candidates, *([] if cell.less is None else [cell.less])]
