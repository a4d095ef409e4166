"""Reads what was asked for on the command line: experiments, seeds, settings and numbers of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from shlex import quote
from typing import Any

from fedkin.command.options import RunOptions
from fedkin.comparison.arms import read_arms
from fedkin.comparison.experiment_files import said_by_files, targets_in
from fedkin.comparison.plan import checked_seeds
from fedkin.data import Data
from fedkin.engines.cluster.connection import HERE
from fedkin.errors import BadInput, require
from fedkin.runs.experiment import Experiment
from fedkin.runs.setup import cores
from fedkin.runs.verdict import LOCAL

MOST_JOBS = 1024


def read_experiments(targets: Sequence[str], options: RunOptions) -> tuple[list[Experiment], list[int], RunOptions]:
    """Return an experiment for each arm that the targets ask for, and the seeds, with the given options on top.

    Also returns the options, with the targets and the numbers of splits and of seeds of the data that a file says where
    they say none.
    """
    methods = read_arms(targets, options.settings or [])
    said, of_data = options.of_experiment(), options.of_data()
    of_data |= {"name": options.data} if options.data is not None else {}
    stored = said_by_files(targets, said, of_data)
    seeds = read_seeds(options.seeds, stored)
    in_files = [str(one) for one in targets_in(stored)]
    repeated: dict[str, Any] = {"goals": options.goals or in_files or None}
    for word in ("splits", "data_seeds"):
        in_file = stored.pop(word, None)
        repeated[word] = in_file if getattr(options, word) is None else getattr(options, word)
    data = {"data": stored.get("data", {}) | of_data}
    like = Experiment.from_json(stored | said | data | {"method": LOCAL})  # until the arms take its place
    return [replace(like, method=method) for method in methods], seeds, replace(options, **repeated)


def read_seeds(text: str | None, stored: dict[str, Any]) -> list[int]:
    """Return the seeds: from the option, or from a file's `seeds` (a number or a list) or `seed`."""
    several = stored.pop("seeds", None)
    if text is not None:
        try:
            numbers = [int(word) for word in text.split(",") if word.strip()]
        except ValueError:
            raise BadInput(f"--seeds takes a number of seeds (3) or a list of them (0,5,7), not '{text}'.") from None
        several = numbers if "," in text or len(numbers) != 1 else numbers[0]
    if several is None:
        several = [stored.get("seed", 0)]
    return checked_seeds(several)


def read_cluster(jobs: str | None, address: str | None) -> str | None:
    """Return the address of the cluster that whole runs are played on (--jobs ray); None: they are not."""
    return address or HERE if jobs is not None and jobs.strip().lower() == "ray" else None


def read_jobs(text: str | None, runs: int, device: str) -> int | None:
    """Return how many runs are played side by side: a number, or 'auto', one a core; one on a GPU."""
    if text is None:
        return None
    if text.strip().lower() == "auto":
        return min(runs, cores()) if device == "cpu" else 1
    whole = text.strip().isascii() and text.strip().isdigit() and len(text) < 9 and 1 <= int(text) <= MOST_JOBS
    require(whole, f"--jobs takes a number of processes from 1 to {MOST_JOBS:,}, or auto: one a core; not '{text}'.")
    return int(text)


def going_on(command: str, folder: Path, experiments: Iterable[Experiment]) -> str:
    """Return how to go on with what lies in a folder, as a shell takes it."""
    trust = " --trust" if any(one.names_modules for one in experiments) else ""
    return f"Go on with: fedkin {command} --resume {quote(str(folder))}{trust}"


def fresh_folder(name: str, experiment: Experiment) -> Callable[[], Path]:
    """Return a function that makes a new folder in runs/, named by what is run and by the data."""
    data = experiment.data.name if isinstance(experiment.data, Data) else "data"
    word = "".join(c if c.isalnum() else "-" for c in Path(data).stem).strip("-")

    def made() -> Path:
        for number in count(1):
            folder = Path("runs") / f"{name}-{word}-{number}"
            with suppress(FileExistsError):  # taken, perhaps this very moment, by another command
                folder.mkdir(parents=True)
                return folder
        raise AssertionError("numbers do not end")

    return made
