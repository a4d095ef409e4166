"""Reads the user's own tables: a file with a column of clients, or a folder with a file for each client."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from fedkin.data.columns import MOST
from fedkin.data.natural_order import natural_key, natural_order
from fedkin.data.notation import partition_argument
from fedkin.data.read_files import TABLES, File, read_file
from fedkin.data.room import check_room
from fedkin.data.samples import Samples, Table
from fedkin.data.spec import Data
from fedkin.data.target import read_target
from fedkin.data.values import date_format, numbers, texts
from fedkin.errors import BadInput, require, shown

if TYPE_CHECKING:
    import pandas as pd

CLIENT = "client"
TARGETS = ("label", "y", "target")
LARGE = 20_000_000  # bytes that take some seconds to be read
OWNER = "\0owner"  # a column of the joined table that is no column of any file


def read_own(data: Data, progress: bool = False) -> Samples:
    """The samples in the file or the folder `data.name`. `progress` says on stderr that a large one is being read."""
    path = own_path(data.name)
    check_room(*([path] if path.is_file() else tables_in(path)))
    size = sum(file.stat().st_size for file in ([path] if path.is_file() else path.iterdir()))
    if progress and size > LARGE:
        print(f"Reading {path.name}, {size / 1e6:,.0f} MB ...", file=sys.stderr, flush=True)
    name, column = partition_argument(data.partition or "natural")
    asked = data.client or (str(column) if column is not None and name == "natural" else None)
    if path.is_file():
        return _samples([read_file(path)], data, asked or CLIENT, needs_client=name == "natural")
    read = [read_file(file) for file in tables_in(path)]
    if asked is None:  # then a file is a client, also if it has a column that is called client
        check_names(read)
        read = [
            File(file.name, file.frame.assign(**{OWNER: Path(file.name).stem}), file.x, file.notes) for file in read
        ]
    return _samples(read, data, asked or CLIENT, needs_client=asked is not None)


def own_path(name: str) -> Path:
    """The file or the folder of this name; what is neither, as a device that never ends, is refused."""
    try:
        path = Path(name).expanduser()
        there = path.exists()
    except (OSError, RuntimeError, ValueError):  # too long, a home of nobody, or no name at all
        there = False
    require(there, f"There is no file or folder {shown(name)}.")
    require(path.is_file() or path.is_dir(), f"{name} is neither a file nor a folder.")
    return path


def check_names(files: list[File]) -> None:
    """Refuse two files of one name, which would be one client."""
    first: dict[str, str] = {}
    for file in files:
        other = first.setdefault(Path(file.name).stem, file.name)
        require(other == file.name, f"{other} and {file.name} would be one client; rename or remove one.")


def tables_in(folder: Path) -> list[Path]:
    """The files of tables in a folder, sorted as people do."""
    files = [file for file in folder.iterdir() if file.is_file() and file.suffix.lower() in TABLES]
    require(files, f"The folder {folder} holds no {', '.join(TABLES)} file.")
    return sorted(files, key=lambda file: natural_key(file.name))


def _samples(files: list[File], data: Data, client: str, needs_client: bool) -> Samples:
    """The rows of all files as one set of samples. A client may have rows in several files."""
    target = target_column(files, data.target)
    for file in files:
        has = client in file.frame.columns or not needs_client
        sentence = f"{file.name} has no column '{client}' that says whose a row is, only {_listed(file)}"
        require(has, f"{sentence}; {_meant(client, file) if client != CLIENT else ''}set 'client' (--client-column).")
    both = target == client and (needs_client or data.client is not None)
    require(
        not both,
        f"The column '{target}' cannot say both whose a row is and what to predict; choose another --target-column.",
    )
    frame, x, notes = joined(files, (target, client))
    frame, x, without = with_target(frame, x, target)
    notes += (f"{without:,} rows without '{target}' are left out.",) if without else ()
    where = f"{data.name}, column '{target}',"
    check_no_dates(frame[target], where)
    _check_several(frame[target], where)
    table = not all(file.name.lower().endswith(".npz") for file in files)
    found = read_target(target_values(frame[target]), where, data.task, table)
    owner: np.ndarray | None = None
    owners: tuple[str, ...] = ()
    if OWNER in frame.columns:
        owner, owners = _numbered(frame[OWNER].tolist(), [Path(file.name).stem for file in files])
    elif needs_client:
        owner, owners = _owners(frame[client], data.name)
    columns = tuple(str(name) for name in frame.columns if name != OWNER)
    features = frame.drop(columns=[name for name in (target, client, OWNER) if name in frame.columns])
    if x is None:
        also = " and the client" if client in columns else ""
        require(len(features.columns), f"{data.name} has no columns besides the label{also}.")
    y = torch.from_numpy(found.y)
    return Samples(
        x=torch.zeros(len(y), 0) if x is None else torch.from_numpy(x),
        y=y if found.task == "classify" else y.float(),
        classes=found.classes,
        owner=owner,
        owners=owners,
        source={"kind": "own", "id": Path(data.name).name, "rows": {"train": len(y)}, "labels": found.listed},
        task=found.task,
        labels=found.labels,
        table=Table(features, columns, target, client if needs_client else None) if x is None else None,
        notes=notes,
    )


def _listed(file: File) -> str:
    return ", ".join([*(["x"] if file.x is not None else []), *(name for name in file.frame.columns if name != OWNER)])


def _meant(asked: str, file: File) -> str:
    """A question whether a column with nearly this name was meant; nothing if there is none."""
    names = {str(name).lower(): str(name) for name in file.frame.columns if name != OWNER}
    near = get_close_matches(asked.lower(), names, n=2)
    return f"did you mean {' or '.join(names[name] for name in near)}? If so, " if near else ""


def target_column(files: list[File], asked: str | None) -> str:
    """The column `asked`, or the first of the usual names that the first file has; every file must have it."""
    wanted = [asked] if asked else [name for name in TARGETS if name in files[0].frame.columns] or list(TARGETS)
    for file in files:
        if not any(name in file.frame.columns for name in wanted):
            raise BadInput(
                f"{file.name} has no column {' or '.join(wanted)} for the label, only {_listed(file)}; "
                f"{_meant(asked, file) if asked else ''}set 'target' (--target-column)."
            )
    return wanted[0]


def joined(files: list[File], besides: tuple[str, str]) -> tuple[pd.DataFrame, np.ndarray | None, tuple[str, ...]]:
    """All files as one table, their samples that are no rows of a table, and sentences for the user.

    A column that a file lacks counts as missing there.
    """
    import pandas as pd

    notes = tuple(note for file in files for note in file.notes)
    shapes = {None if file.x is None else file.x.shape[1:] for file in files}
    require(len(shapes) == 1, f"The files have samples of different shapes: {', '.join(map(str, shapes))}.")
    columns = list(dict.fromkeys(name for file in files for name in file.frame.columns))
    for file in files:
        lacking = [name for name in columns if name not in file.frame.columns and name not in besides]
        common = [name for name in file.frame.columns if name not in (*besides, OWNER)]
        if lacking:
            require(common, f"{file.name} has none of the columns of the other files: {', '.join(lacking)}.")
            notes += (f"{file.name} lacks {', '.join(lacking)}, which count as missing there.",)
    full = [file.frame for file in files if len(file.frame)] or [files[0].frame]
    frame = pd.concat(full, ignore_index=True).reindex(columns=columns)
    x = None if files[0].x is None else np.concatenate([file.x for file in files if file.x is not None])
    return frame, x, notes


def with_target(frame: pd.DataFrame, x: np.ndarray | None, target: str) -> tuple[pd.DataFrame, np.ndarray | None, int]:
    """The rows that have a target, and the number of those without one."""
    import pandas as pd

    column = frame[target]
    numeric = pd.api.types.is_numeric_dtype(column)
    missing = column.isna().to_numpy() if numeric else np.array([text is None for text in texts(column)], dtype=bool)
    if not missing.any():
        return frame, x, 0
    return frame[~missing].reset_index(drop=True), None if x is None else x[~missing], int(missing.sum())


def check_no_dates(column: pd.Series, where: str) -> None:
    """Refuse a target that is dates."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return
    moments = pd.api.types.is_datetime64_any_dtype(column)
    if not moments and np.isnan(numbers(column)).any():
        moments = date_format(texts(column), MOST) is not None
    require(not moments, f"{where} is dates; choose another --target-column.")


def _check_several(column: pd.Series, where: str) -> None:
    """Refuse a target that has the same value in every row."""
    import pandas as pd

    different = len(column.unique()) if pd.api.types.is_numeric_dtype(column) else len(set(texts(column)))
    if different == 1:
        value = texts(column.head(1))[0]
        raise BadInput(
            f"{where} has one value only, '{value}': there is nothing to learn; choose another --target-column."
        )


def target_values(column: pd.Series) -> np.ndarray:
    """The targets as booleans, whole numbers, floats or, if they are none of these, as text."""
    import pandas as pd

    if pd.api.types.is_bool_dtype(column):
        return np.asarray(column.to_numpy(dtype=bool))
    if pd.api.types.is_numeric_dtype(column):
        return np.asarray(column.to_numpy(dtype=float if pd.api.types.is_float_dtype(column) else np.int64))
    return np.array(texts(column).tolist(), dtype=str)


def _owners(column: pd.Series, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """The number of each row's client, and the clients' names. A category without rows is a client without samples."""
    import pandas as pd

    whose = texts(column).tolist()
    sentence = f"{name} has rows without a client in the column '{column.name}'; fill them in or delete them."
    require(None not in whose, sentence)
    category = isinstance(column.dtype, pd.CategoricalDtype)
    known = texts(pd.Series(column.cat.categories)).tolist() if category else []
    return _numbered(whose, [text for text in known if text is not None])


def _numbered(whose: list[str], known: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """The number of each row's client, and the clients' names in natural order. `known` clients may have no rows."""
    owners = natural_order({*whose, *known})
    number = {owner: place for place, owner in enumerate(owners)}
    return np.array([number[owner] for owner in whose], dtype=np.int64), tuple(owners)
