"""Reads one file of the user's own data, of any kind that there is a reader for."""

from __future__ import annotations

import csv
import json
import warnings
import zipfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedkin.data.room import check_room
from fedkin.data.values import MARKS, check_size, with_points
from fedkin.errors import BadInput, require

if TYPE_CHECKING:
    import pandas as pd

TABLES = (".csv", ".tsv", ".parquet", ".xlsx", ".jsonl", ".ndjson", ".npz")  # the files that own data may come in
CONVERTED = {  # other files of tables, and what turns one into a file that is read
    ".json": "pandas.read_json({0!r}).to_csv({1!r}, index=False)",
    ".feather": "pandas.read_feather({0!r}).to_csv({1!r}, index=False)",
    ".sav": "pandas.read_spss({0!r}).to_csv({1!r}, index=False)",
    ".dta": "pandas.read_stata({0!r}).to_csv({1!r}, index=False)",
    ".sas7bdat": "pandas.read_sas({0!r}).to_csv({1!r}, index=False)",
    ".xls": "pandas.read_excel({0!r}).to_csv({1!r}, index=False)",
    ".ods": "pandas.read_excel({0!r}).to_csv({1!r}, index=False)",
    ".pkl": "pandas.read_pickle({0!r}).to_csv({1!r}, index=False)",
    ".rds": "write.csv(readRDS({0!r}), {1!r}, row.names = FALSE) in R",
    ".txt": "renaming it to {1!r} if its columns are separated",
}
SEPARATORS = ",;\t|"


@dataclass(frozen=True)
class File:
    """The content of one file: a table of all its columns and, where samples are no rows of a table, the samples."""

    name: str
    frame: pd.DataFrame
    x: np.ndarray | None = None  # (N, ...) float32: images and other arrays
    notes: tuple[str, ...] = ()  # sentences that the user should read


def read_file(path: Path, as_text: Collection[str] = ()) -> File:
    """The content of a file; one that cannot be read is refused in a sentence that says what to do.

    The columns `as_text` stay as they are written: a code 010 among rows to predict is not the number 10, although
    these rows have no other code that would tell.
    """
    ending = path.suffix.lower()
    if ending in CONVERTED:
        how = CONVERTED[ending].format(path.name, f"{path.stem}.csv")
        raise BadInput(f"{path.name} is not read by fedkin; make it a CSV file, for example by {how}.")
    require(ending in TABLES, f"{path.name} is not read by fedkin; give a file of these kinds: {', '.join(TABLES)}.")
    check_room(path)
    try:
        if ending == ".npz":
            return _read_npz(path)
        frame, notes = _read_frame(path, ending, as_text)
    except ImportError as refusal:
        raise BadInput(
            f"{path.name} needs the package openpyxl to be read: pip install 'fedkin[excel]', or save the sheet as CSV."
        ) from refusal
    # pandas' and pyarrow's own errors are among these; a file may say that it has more values than any memory
    except (OSError, ValueError, EOFError, KeyError, RecursionError, MemoryError, zipfile.BadZipFile) as refusal:
        if isinstance(refusal, BadInput):
            raise
        reason = (str(refusal).strip().splitlines() or ["unreadable"])[0].rstrip(".")
        raise BadInput(f"{path.name} could not be read, it may be truncated: {reason}.") from refusal
    frame.columns = [str(name).strip() for name in frame.columns]
    check_different([str(name) for name in frame.columns], path.name)
    return File(path.name, frame, notes=notes)


def check_different(names: list[str], file: str) -> None:
    """Refuse two columns of one name: the second one of a label would be learned from. Columns without a name may be
    several."""
    twice = sorted({name for name in names if name and names.count(name) > 1})
    require(not twice, f"{file} has two columns called {' and two called '.join(twice)}; rename one.")


def _read_frame(path: Path, ending: str, as_text: Collection[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    import pandas as pd

    if ending in (".csv", ".tsv"):
        return _read_separated(path, as_text)
    if ending == ".parquet":
        return pd.read_parquet(path), ()
    if ending == ".xlsx":
        with warnings.catch_warnings():  # openpyxl warns of styles, which do not matter here
            warnings.simplefilter("ignore")
            head = pd.read_excel(path, header=None, nrows=1, keep_default_na=False, dtype=str)
            check_different([str(name).strip() for name in head.to_numpy().flatten()], path.name)
            return pd.read_excel(path, keep_default_na=False, na_values=list(MARKS)), ()
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    records = [json.loads(line, object_pairs_hook=lambda pairs: _record(pairs, path)) for line in lines if line.strip()]
    require(all(isinstance(record, dict) for record in records), f"{path.name} has a line that is no JSON object.")
    return pd.DataFrame(records), ()


def _record(pairs: list[tuple[str, object]], path: Path) -> dict[str, object]:
    """The object that a line of a JSON file is."""
    check_different([name for name, _ in pairs], path.name)
    return dict(pairs)


def _read_separated(path: Path, as_text: Collection[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """A table of columns with a separator between them, which is found by the first lines."""
    import pandas as pd

    encoding, notes = _encoding(path)
    with path.open(encoding=encoding, newline="") as opened:
        lines = [line for _, line in zip(range(5), opened, strict=False)]
    separator = "\t" if path.suffix.lower() == ".tsv" else _separator(lines)
    names = next((row for row in csv.reader(lines, delimiter=separator, skipinitialspace=True) if row), [])
    check_different([name.strip() for name in names], path.name)  # pandas would rename the second one
    frame = pd.read_csv(
        path,
        sep=separator,
        encoding=encoding,
        keep_default_na=False,
        na_values=list(MARKS),
        skipinitialspace=True,
        dtype=dict.fromkeys(as_text, str),
        low_memory=False,  # a column has one type, not one for each part of a long file
    )
    if separator == ";":  # then a comma inside a number is a decimal one
        for name in frame.columns:
            frame[name] = with_points(frame[name], str(name).strip() in as_text)
    return frame, notes


def _encoding(path: Path) -> tuple[str, tuple[str, ...]]:
    """How the text of a file is encoded: UTF-8, UTF-16 with its mark, or else Latin-1, which is said."""
    content = path.read_bytes()
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16", ()
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "latin-1", (f"{path.name} is not encoded in UTF-8; it was read as Latin-1.",)
    return "utf-8-sig", ()


def _separator(lines: list[str]) -> str:
    """The separator that cuts the first line into most columns; a comma if there is no other."""
    columns = {mark: len(next(csv.reader(lines[:1], delimiter=mark), [])) for mark in SEPARATORS}
    return max(SEPARATORS, key=lambda mark: columns[mark])


def _read_npz(path: Path) -> File:
    """The arrays of an npz file. An `x` of two dimensions is a table of numbers with the columns x0, x1 and so on."""
    import pandas as pd

    # opened here, since numpy does not close a damaged file
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    require("x" in arrays, f"{path.name} has no array 'x', only {', '.join(arrays) or 'none'}.")
    x = arrays.pop("x")
    require(x.dtype.kind in "fiub", f"{path.name} has features in 'x' that are not numbers.")
    require(x.ndim and len(x), f"{path.name} has no samples in 'x'.")
    odd = [name for name, array in arrays.items() if array.dtype.kind not in "fiubUSM"]
    require(not odd, f"{path.name} has values in '{odd[0] if odd else ''}' that are neither numbers, text nor dates.")
    for name, array in arrays.items():
        same = array.ndim == 1 and len(array) == len(x)
        require(same, f"{path.name} has {len(x)} rows in 'x' but {array.shape} values in '{name}'.")
    if x.ndim <= 2:
        table = x.reshape(len(x), -1)
        numbers = pd.DataFrame(table, columns=[f"x{place}" for place in range(table.shape[1])])
        return File(path.name, pd.concat([numbers, pd.DataFrame(arrays)], axis=1))
    wrong = np.flatnonzero(~np.isfinite(x.reshape(len(x), -1)).all(axis=1)) if len(x) else np.zeros(0, dtype=np.int64)
    require(not len(wrong), f"{path.name} lacks a finite value in 'x' (row {wrong[0] + 1 if len(wrong) else 0}).")
    check_size(x, f"'x' of {path.name}")
    return File(path.name, pd.DataFrame(arrays), x.astype(np.float32))
