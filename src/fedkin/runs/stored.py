"""The files of a run, read when they are first asked for: what `Run` is made of."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from fedkin.errors import require
from fedkin.runs.folder import RunFolder


class Stored:
    """A run by its folder, or by what is `known` of it in memory."""

    def __init__(
        self,
        folder: Path | str | None = None,
        asked: int | None = None,
        seed: int | None = None,
        known: Mapping[str, Any] | None = None,
        temporary: object = None,
        metric: str | None = None,
    ):
        self.folder = None if folder is None else Path(folder)
        self.temporary = temporary
        said = {"asked": asked, "seed": seed, "metric": metric}
        self.__dict__.update(known or {})
        self.__dict__.update({name: value for name, value in said.items() if value is not None})

    @cached_property
    def files(self) -> RunFolder:
        """The files of the run; refused where the run has no folder, or one of a layout that is not known."""
        require(self.folder is not None, "This run was played without a folder, so this was not kept; give fk.run one.")
        return RunFolder(self.folder or Path()).checked()

    @cached_property
    def experiment(self) -> dict[str, Any]:
        """What experiment.json says: the experiment, and under 'resolved' what was chosen for it."""
        return self.files.experiment()

    @property
    def n(self) -> int:
        """How many clients there are."""
        return int(self.experiment["resolved"]["clients"])

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        """What rounds.jsonl says: a dictionary for each round that was played."""
        return self.files.rounds() if self.files.has_rounds else []
