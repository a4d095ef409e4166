"""Reads the files of rows that a run is asked about: a table of its columns, or samples as arrays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fedkin.data.read_files import read_file
from fedkin.data.values import texts
from fedkin.errors import BadInput, require
from fedkin.runs.run import Run

if TYPE_CHECKING:
    import pandas as pd

TARGETS = ("y", "label", "target")  # names of the array of targets


def read_rows(run: Run, path: Path) -> pd.DataFrame | np.ndarray:
    """Return the rows of a file: a table where the run was trained on one, else an array of samples."""
    if run.preparation is not None:
        return read_table(run.preparation, path)
    return read_arrays(path)["x"]


def read_table(how: dict[str, Any], path: Path) -> pd.DataFrame:
    """Return a table whose categories are read as text, as in training."""
    categories = [feature["column"] for feature in how["features"] if feature["is"] in ("category", "other")]
    return read_file(path, dict.fromkeys(categories)).frame


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file or the tensors of a .pt file."""
    ending = path.suffix.lower()
    require(
        ending in (".npz", ".pt"), f"This run was trained on arrays; give an .npz or .pt file with x, not {path.name}."
    )
    try:
        if ending == ".npz":
            with np.load(path, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
        else:
            loaded = torch.load(path, map_location="cpu", weights_only=True)
            named = loaded if isinstance(loaded, dict) else {"x": loaded}
            arrays = {name: value.numpy() for name, value in named.items() if isinstance(value, torch.Tensor)}
    except Exception as error:  # torch and zip raise many kinds
        raise BadInput(f"{path.name} could not be read: {str(error).splitlines()[0]}") from error
    require("x" in arrays, f"{path.name} has no array 'x', only {', '.join(arrays) or 'none'}.")
    return arrays


def read_site(
    run: Run, path: Path, name: str | None = None
) -> tuple[pd.DataFrame | tuple[np.ndarray, np.ndarray], str]:
    """Return the rows of a new site and its name: the one given, what its column of clients says, or the file's."""
    if run.preparation is None:
        arrays = read_arrays(path)
        target = next((word for word in TARGETS if word in arrays), None)
        if target is None:
            raise BadInput(f"{path.name} has no array y of targets, only {', '.join(arrays)}.")
        return (arrays["x"], arrays[target]), checked_name(run, name or path.stem)
    table, column = read_table(run.preparation, path), run.preparation["client"]
    if column in table.columns:
        owners = sorted({text for text in texts(table[column]) if text is not None})
        sites = f"{', '.join(owners[:5])}{' ...' if len(owners) > 5 else ''}"
        require(len(owners) <= 1, f"{path.name} has rows of {len(owners)} sites ({sites}); give one site a file.")
        name = name or next(iter(owners), None)
    return table, checked_name(run, name or path.stem)


def checked_name(run: Run, name: str) -> str:
    """Return the name of a new site; refuses that of a client of the run, whose models have seen its rows."""
    there = name in run.about_clients["names"]
    require(not there, f"{name} took part in this run; 'fedkin report' has its verdict. If it is another, say --name.")
    return name
