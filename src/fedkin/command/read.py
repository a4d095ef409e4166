"""Reads what was asked for on the command line: experiments, seeds, settings and numbers of processes."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from fedkin.command.options import RunOptions
from fedkin.command.settings import with_settings
from fedkin.comparison.plan import checked_seeds
from fedkin.data import Data
from fedkin.errors import BadInput, require
from fedkin.methods import named
from fedkin.parts import Method, Part
from fedkin.runs.experiment import Experiment
from fedkin.runs.setup import cores


def read_experiment(target: str, options: RunOptions) -> tuple[Experiment, list[int]]:
    """Return the experiment and its seeds: from a file or a method's name, with the given options on top."""
    stored: dict[str, Any] = {"method": target}
    path = Path(target)
    if path.suffix in (".json", ".toml"):
        stored = from_file(path)
    seeds = read_seeds(options.seeds, stored)
    data = stored.get("data", {})
    data = ({"name": data} if isinstance(data, str) else dict(data)) | options.of_data()
    data |= {"name": options.data} if options.data is not None else {}
    return Experiment.from_json(stored | options.of_experiment() | ({"data": data} if data else {})), seeds


def from_file(path: Path) -> dict[str, Any]:
    """Return the experiment in a JSON or TOML file, as JSON."""
    try:
        text = path.read_text()
        stored = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise BadInput(f"{path} is not a valid {path.suffix[1:].upper()} file: {error}.") from error
    require(isinstance(stored, dict), f"{path} does not hold an experiment.")
    stored.pop("resolved", None)
    return dict(stored)


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


def read_jobs(text: str | None, runs: int, device: str) -> int | None:
    """Return how many runs are played side by side: a number, or 'auto', one a core; one on a GPU."""
    if text is None:
        return None
    if text.strip().lower() == "auto":
        return min(runs, cores()) if device == "cpu" else 1
    whole = text.strip().isascii() and text.strip().isdigit() and int(text) >= 1
    require(whole, f"--jobs takes a number of processes from 1, or auto: one a core; not '{text}'.")
    return int(text)


def read_methods(targets: list[str], settings: list[str]) -> list[Method]:
    """Return the methods of these names with the settings applied that each of them has fields for.

    With one method all settings must fit; with several, each setting must fit at least one of them.
    """
    methods = [named(target) for target in targets]
    several = len(methods) > 1
    made = [with_settings(m, [s for s in settings if not several or has(m, path_of(s))]) for m in methods]
    for path in map(path_of, settings):
        require(any(has(method, path) for method in made), f"None of {', '.join(targets)} has a field '{path}'.")
    return made


def path_of(setting: str) -> str:
    return setting.partition("=")[0]


def has(method: Method, path: str) -> bool:
    """Whether a method has a field at this path, as 'train.eta'."""
    part: object = method
    for name in path.split("."):
        if not isinstance(part, Part) or name not in part.values():
            return False
        part = getattr(part, name)
    return True


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
