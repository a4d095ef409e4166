"""Experiments and methods in files: read from TOML and JSON, and written.

TOML has no null, so the text "null" stands for it there.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from fedkin.errors import BadInput, require
from fedkin.runs import files, part_json
from fedkin.runs.manifest import SEAL
from fedkin.runs.toml import NULL, toml

LARGEST = 50_000_000  # bytes of a file


def read_file(path: Path) -> dict[str, Any]:
    """Return the experiment in a JSON or TOML file, as JSON; a file of a method only is one with just a method."""
    require(not path.exists() or path.is_file(), f"{path} is no file; give a .toml or .json file.")
    large = path.exists() and path.stat().st_size > LARGEST
    require(not large, f"{path} is larger than any experiment ({LARGEST // 10**6} MB); give another file.")
    try:
        text = path.read_text()
        stored = json.loads(text) if path.suffix == ".json" else without_null(tomllib.loads(text))
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from error
    except RecursionError:
        raise BadInput(f"{path} is nested too deeply to be an experiment.") from None
    except ValueError as error:
        raise BadInput(f"{path} is not a valid {path.suffix[1:].upper()} file: {error}.") from error
    require(isinstance(stored, dict), f"{path} does not hold an experiment.")
    if part_json.IS in stored:
        return {"method": stored}
    return {name: value for name, value in stored.items() if name not in ("resolved", SEAL)}


def without_null(value: Any) -> Any:
    """Return what a TOML file says, with None for "null"."""
    if isinstance(value, dict):
        return {name: without_null(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_null(inner) for inner in value]
    return None if value == NULL else value


def write_file(path: Path, value: dict[str, Any]) -> None:
    """Write an experiment, as JSON has it, as a JSON or TOML file."""
    require(path.suffix in (".json", ".toml"), f"An experiment is saved as .toml or .json, not as '{path.name}'.")
    require(not path.exists(), f"{path} exists already; choose another name.")
    require(path.parent.is_dir(), f"There is no folder {path.parent} to save the experiment in.")
    files.write(path, (json.dumps(value, indent=2) + "\n" if path.suffix == ".json" else toml(value)).encode())
