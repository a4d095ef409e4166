"""Reads and checks one CSV, Parquet or npz file of the user's own data."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedkin.errors import BadInput, require

if TYPE_CHECKING:
    import pandas as pd

CLIENT = "client"
TARGETS = ("label", "y", "target")


@dataclass(frozen=True)
class Table:
    """The rows of one file."""

    x: np.ndarray  # (N, ...) float32
    y: np.ndarray  # (N,) labels as in the file
    owner: np.ndarray | None = None  # (N,) the place of the row's client in `owners`
    owners: tuple[str, ...] = ()  # names of the clients
    columns: tuple[str, ...] = ()  # names of the features, if they have names

    def owned_by(self, client: str) -> Table:
        """The same rows, all owned by this client."""
        return replace(self, owner=np.zeros(len(self.y), dtype=np.int64), owners=(client,))


def read_table(file: Path, client: str | None, target: str | None, needs_client: bool) -> Table:
    """The rows of a file.

    `client` and `target` are the columns of the clients and the labels; None means the usual names. `needs_client`
    refuses a file without a column of clients.
    """
    require(file.stat().st_size, f"{file.name} is empty.")
    if file.suffix.lower() == ".npz":
        return _read_npz(file, client, target, needs_client)
    return _read_frame(file, client, target, needs_client)


def _label_column(file: Path, target: str | None, columns: list[str]) -> str:
    """The column `target`, or the first of the usual names that the file has."""
    wanted = [target] if target else list(TARGETS)
    found = [name for name in wanted if name in columns]
    if not found:
        raise BadInput(
            f"{file.name} has no column {' or '.join(wanted)} for the label, only {', '.join(columns)}; set 'target'."
        )
    return found[0]


def _check_client(file: Path, client: str, columns: list[str], needs_client: bool) -> None:
    require(
        client in columns or not needs_client,
        f"{file.name} has no column '{client}' that says whose a row is, only {', '.join(columns)}; set 'client'.",
    )


def _read_frame(file: Path, client: str | None, target: str | None, needs_client: bool) -> Table:
    import pandas as pd

    try:
        frame = pd.read_csv(file) if file.suffix.lower() == ".csv" else pd.read_parquet(file)
    except (OSError, ValueError, UnicodeDecodeError) as refusal:  # pandas' and pyarrow's own errors are among these
        reason = (str(refusal).strip().splitlines() or ["unreadable"])[0].rstrip(".")
        raise BadInput(f"{file.name} could not be read, it may be truncated: {reason}.") from refusal
    frame.columns = frame.columns.map(str)
    columns = list(frame.columns)
    label = _label_column(file, target, columns)
    by = client or CLIENT
    _check_client(file, by, columns, needs_client)
    owner, owners = _owners(frame[by], file) if by in columns and (needs_client or client is None) else (None, ())
    features = [name for name in columns if name not in (label, by)]
    require(features, f"{file.name} has no columns besides the label{' and the client' if by in columns else ''}.")
    x = _features(frame[features], file, owner, owners)
    require(not frame[label].isna().any(), f"{file.name} has rows without a label in the column '{label}'.")
    return Table(x, _labels(frame[label]), owner, owners, tuple(features))


def _labels(column: pd.Series) -> np.ndarray:
    """The labels as whole numbers, as floats or, if they are not numbers, as text."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return np.asarray(column.to_numpy(dtype=float if pd.api.types.is_float_dtype(column) else np.int64))
    return np.asarray(column.astype(str).to_numpy(dtype=str))


def _owners(column: pd.Series, file: Path) -> tuple[np.ndarray, tuple[str, ...]]:
    """The number of each row's client and the clients' names. A category without rows is a client without samples."""
    require(not column.isna().any(), f"{file.name} has rows without a client in the column '{column.name}'.")
    category = column.astype("category")
    return category.cat.codes.to_numpy(dtype=np.int64), tuple(str(name) for name in category.cat.categories)


def _features(frame: pd.DataFrame, file: Path, owner: np.ndarray | None, owners: tuple[str, ...]) -> np.ndarray:
    """The features as float32, all of them finite numbers. `owner` and `owners` name the client in the error."""
    import pandas as pd

    other = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    if len(frame):
        require(not other, f"{file.name} has features that are not numbers in the columns {', '.join(other)}.")
    x = frame.apply(pd.to_numeric).to_numpy(dtype=np.float32, na_value=np.nan)
    wrong = np.argwhere(~np.isfinite(x))
    if len(wrong):
        row, column = wrong[0]
        whose = f" of client {owners[owner[row]]}" if owner is not None else f" of {file.stem}"
        raise BadInput(
            f"{file.name} lacks a finite value in the column '{frame.columns[column]}'{whose} (row {row + 1})."
        )
    return np.asarray(x)


def _read_npz(file: Path, client: str | None, target: str | None, needs_client: bool) -> Table:
    try:
        # opened here, since numpy does not close a damaged file
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as refusal:
        raise BadInput(f"{file.name} could not be read, it may be truncated: {refusal}.") from refusal
    names = list(arrays)
    require("x" in arrays, f"{file.name} has no array 'x', only {', '.join(names) or 'none'}.")
    label = _label_column(file, target, names)
    by = client or CLIENT
    _check_client(file, by, names, needs_client)
    x, y = arrays["x"], arrays[label]
    require(x.dtype.kind in "fiub", f"{file.name} has features in 'x' that are not numbers.")
    require(
        y.ndim == 1 and len(x) == len(y), f"{file.name} has {len(x)} rows in 'x' but {y.shape} labels in '{label}'."
    )
    owner: np.ndarray | None = None
    owners: tuple[str, ...] = ()
    if by in arrays:
        require(len(arrays[by]) == len(y), f"{file.name} has {len(y)} labels but {len(arrays[by])} clients.")
        found, owner = np.unique(arrays[by], return_inverse=True)
        owners = tuple(str(name) for name in found)
    wrong = np.flatnonzero(~np.isfinite(x.reshape(len(x), -1)).all(axis=1)) if len(x) else np.zeros(0, dtype=np.int64)
    if len(wrong):
        whose = f" of client {owners[owner[wrong[0]]]}" if owner is not None else ""
        raise BadInput(f"{file.name} lacks a finite value in 'x'{whose} (row {wrong[0] + 1}).")
    return Table(x.astype(np.float32), y, owner, owners)
