"""What files among the targets of a comparison say beside their methods, and comparisons written as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fedkin.comparison.targets import is_file, target_parts
from fedkin.errors import BadInput, require
from fedkin.parts import Method
from fedkin.runs import part_json
from fedkin.runs.experiment import Experiment, data_from_json
from fedkin.runs.experiment_file import read_file
from fedkin.runs.resume import difference
from fedkin.runs.verdict import LOCAL


def said_by_files(targets: Sequence[object], said: Mapping[str, Any], of_data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the files among these targets say beside their methods; the first that says a thing is believed.

    `said` and `of_data` are what the user says beside the files, of the experiment and of its data, and hold. Files
    that disagree about anything else are refused.
    """
    found: dict[str, Any] = {}
    by: dict[str, Path] = {}
    for path in files_among(targets):
        for name, value in read_file(path).items():
            if name == "tuned" or name in ("method", "methods", *said):
                continue
            if name == "data":
                table = {"name": value} if isinstance(value, str) else value
                require(isinstance(table, dict), f"The data in {path} are a name or a table, not {value!r}.")
                value = asdict(data_from_json(table | dict(of_data)))
            differs = difference(found[name], value, name) if name in found else None
            if differs:
                where, old, new = differs
                sentence = f"{by[name]} and {path} disagree ({where} is {old!r} in one and {new!r} in the other)"
                raise BadInput(f"{sentence}; say which with an option, or take it out of one file.")
            found.setdefault(name, value)
            by.setdefault(name, path)
    return found


def like_files(targets: Sequence[object], method: Method, said: Mapping[str, Any]) -> tuple[Experiment, dict[str, Any]]:
    """Return the experiment of a method with what is said and, for the rest, what the files among the targets say.

    Also returns what files say of repetitions and targets: the seeds, and the numbers of splits and of seeds of the
    data, else one of each.
    """
    stored = said_by_files(targets, said, {})
    repeated = {"seeds": stored.pop("seeds", [stored.get("seed", 0)])}
    repeated |= {word: stored.pop(word, 1) for word in ("splits", "data_seeds")} | {"targets": targets_in(stored)}
    like = Experiment.from_json(stored | {"method": LOCAL})  # until the method takes its place
    return replace(like, method=method, **said), repeated


def targets_in(stored: dict[str, Any]) -> list[str | float]:
    """Take the targets out of what files say; none where they say nothing."""
    found = stored.pop("targets", [])
    listed = isinstance(found, list) and all(isinstance(one, str | float | int) for one in found)
    require(listed, f'The targets in a file are a list, as in [0.9, "fedavg+0.01"], not {found!r}.')
    return list(found)


def files_among(targets: Sequence[object]) -> list[Path]:
    """Return the files that targets are built on, each once."""
    bases = [target_parts(target)[0] for target in targets if isinstance(target, str)]
    return list(dict.fromkeys(Path(base) for base in bases if is_file(base)))


def as_file(
    experiments: Sequence[Experiment],
    seeds: Sequence[int],
    splits: int | None = None,
    data_seeds: int | None = None,
    targets: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return experiments that differ in their methods only, with how often they are repeated, as one file has them."""
    found = experiments[0].described()
    require("given" not in found["data"], "Data handed over in Python cannot be saved in a file.")
    del found["method"], found["seed"]
    methods = [part_json.to_json(experiment.method) for experiment in experiments]
    repeated: dict[str, Any] = {"seeds": list(seeds), "splits": splits, "data_seeds": data_seeds}
    repeated |= {"targets": list(targets)} if targets else {}
    found |= {word: value for word, value in repeated.items() if value is not None}
    return found | ({"method": methods[0]} if len(methods) == 1 else {"methods": methods})
