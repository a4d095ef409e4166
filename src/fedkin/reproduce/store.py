"""Where the runs of presets lie: each in a folder named by what it is, so that presets share the runs they have in
common, and a command that was stopped goes on with the runs that are there."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import Path
from typing import Any

from fedkin.comparison.plan import Planned
from fedkin.errors import require
from fedkin.imports import named_in
from fedkin.presets.preset import Preset
from fedkin.runs.experiment import Experiment, fixed_fields
from fedkin.runs.folder import RunFolder
from fedkin.runs.run import Run

FOLDER = Path("runs/presets")
LENGTH = ("rounds", "evaluate_every")  # a run may be gone on with, but a longer one is another run of a preset


@dataclass(frozen=True)
class Store:
    """The folder of all runs of presets."""

    path: Path = FOLDER

    def place(self, experiment: Experiment) -> RunFolder:
        """The folder of a run: its method and data in words, and a digest of everything that makes it what it is."""
        fixed = {name: getattr(experiment, name) for name in (*(entry.name for entry in fixed_fields()), *LENGTH)}
        digest = blake2b(json.dumps(essence(experiment, fixed), sort_keys=True).encode(), digest_size=5).hexdigest()
        data = getattr(experiment.data, "name", "data")
        words = f"{experiment.method.name}-{data}-{experiment.model}"
        name = re.sub(r"[^A-Za-z0-9._=@+-]+", "-", words)[:80]
        return RunFolder(self.path / "runs" / f"{name}-{digest}" / f"seed-{experiment.seed}")

    def finished(self, experiment: Experiment) -> Run | None:
        """The run of an experiment, if it is there and done."""
        place = self.place(experiment)
        if not place.begun:
            lost = f"{place.path} has a summary and no experiment, so it is damaged; delete it to run it anew."
            require(not place.summarised, lost)
            return None
        run = Run(place.path, experiment.rounds, experiment.seed)
        if not run.finished:
            return None
        names = {entry.name for entry in fields(Experiment)}
        with named_in(place.path):
            stored = Experiment.from_json({name: value for name, value in run.experiment.items() if name in names})
        same = self.place(stored).path == place.path
        require(same, f"{place.path} holds a run of another version, with other defaults; delete it to run it anew.")
        return run

    def result(self, preset: Preset) -> Path:
        """The folder of what a preset came to."""
        return self.path / f"{preset.paper}-{preset.place}-{preset.scale}"


def essence(of: object, values: dict[str, Any] | None = None) -> Any:
    """What makes an experiment, a part or data what they are, as JSON: the fields that differ from their defaults.

    So a field that a later version adds leaves the folder of a run as it is.
    """
    if not is_dataclass(of) or isinstance(of, type):
        return [essence(one) for one in of] if isinstance(of, list | tuple) else of
    known = {entry.name: entry for entry in fields(of)}
    found = {name: getattr(of, name) for name in known} if values is None else values
    changed = {
        name: essence(value)
        for name, value in found.items()
        if known[name].default is MISSING or value != known[name].default
    }
    return {"is": type(of).__name__} | changed


def planned(preset: Preset, store: Store, only: Sequence[str] = ()) -> list[Planned]:
    """The runs of a preset, those on the same data after one another. `only` are patterns of columns, as 'Syn*'."""
    wanted = preset
    if only:
        columns = [column for column in preset.columns if any(fnmatchcase(column, pattern) for pattern in only)]
        known = ", ".join(preset.columns)
        require(columns, f"{preset.name} has no column that fits {', '.join(only)}; its columns are {known}.")
        wanted = preset.with_columns(columns)
    runs = [Planned(experiment, store.place(experiment), label) for label, experiment in wanted.experiments()]
    order: dict[str, int] = {}
    for one in runs:
        order.setdefault(repr(one.experiment.data), len(order))
    return sorted(runs, key=lambda one: order[repr(one.experiment.data)])
