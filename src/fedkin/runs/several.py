"""Reads the runs of one method from its folder: one run, or several that differ in their seed or split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from fedkin import imports
from fedkin.errors import require
from fedkin.runs import statistics
from fedkin.runs.command_folder import CommandFolder
from fedkin.runs.run import Run

if TYPE_CHECKING:
    import pandas as pd


class Runs(Sequence[Run]):
    """The runs of one method with several seeds, or on several splits of the data, in that order."""

    def __init__(self, folder: Path, runs: Sequence[Run]):
        self.folder, self.runs = folder, tuple(runs)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Run, ...]: ...
    def __getitem__(self, index: int | slice) -> Run | tuple[Run, ...]:
        return self.runs[index]

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __repr__(self) -> str:
        return f"Runs({self.folder}: {self.method}, {len(self)} runs)"

    @property
    def method(self) -> str:
        return self.runs[0].method

    @property
    def seeds(self) -> list[int]:
        """The seeds, each once."""
        return list(dict.fromkeys(run.seed for run in self.runs))

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The summaries of all runs as one: means over runs, and their spread."""
        return statistics.merged([run.summary for run in self.runs])

    def clients(self) -> pd.DataFrame:
        """Return a table with a row for each run and client: its 'seed', its 'split' and 'data_seed' where there
        are several, and what `Run.clients` says."""
        return self.joined(Run.clients)

    def rounds(self) -> pd.DataFrame:
        """Return a table with a row for each run and round: its 'seed', its 'split' and 'data_seed' where there are
        several, and what the run recorded."""
        return self.joined(Run.rounds)

    def joined(self, table: Callable[[Run], pd.DataFrame]) -> pd.DataFrame:
        """Return the tables of all runs below each other, with columns in front that say which run a row is of."""
        import pandas as pd

        words = [word for word in ("data_seed", "split") if len({getattr(run, word) for run in self.runs}) > 1]
        found = []
        for run in self.runs:
            one = table(run)
            for word in (*words, "seed"):
                one.insert(0, word, getattr(run, word))
            found.append(one)
        return pd.concat(found, ignore_index=True)


def finished_runs(folder: Path | str) -> list[Run]:
    """Return the runs in a folder, which must be finished, in the order of their methods, seeds and splits."""
    place = Path(folder)
    found = CommandFolder(place).runs() or CommandFolder(place).runs_of_method()
    require(found, f"{place} is not a run of fedkin.")
    late = [one.path for one in found if not (one.has_models and one.summarised)]
    require(not late, f"The run in {late[0] if late else place} is not finished; go on with --resume.")
    runs = [Run(one.checked().path) for one in found]
    return sorted(runs, key=lambda run: (run.method, run.data_seed, run.seed, run.split))


def load_run(folder: Path | str, trust: bool = False) -> Run | Runs:
    """Read the finished runs of one method: a `Run`, or `Runs` where the folder has several seeds or splits.

    Modules that the folder names are imported only if you `trust` it.

    The folder is that of a run, that of a method in a comparison, or that of a command with one method.
    """
    if trust:
        imports.trust(Path(folder))
    runs = finished_runs(folder)
    methods = list(dict.fromkeys(run.method for run in runs))
    some = ", ".join(methods[:6])
    sentence = f"{folder} holds {len(methods)} methods; use fk.load, or load one of them: {some}."
    require(len(methods) == 1, sentence)
    return runs[0] if len(runs) == 1 else Runs(Path(folder), runs)
