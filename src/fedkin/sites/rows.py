"""Reads the rows of one site: of a file or a folder of its own, or its rows of a file that several sites have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedkin.data.federation import Task
from fedkin.data.holdout import split
from fedkin.data.own_tables import CLIENT, check_no_dates, joined, tables_in, target_column, target_values, with_target
from fedkin.data.prepare import used_columns
from fedkin.data.read_files import File, read_file
from fedkin.data.samples import Table
from fedkin.data.spec import Data
from fedkin.data.target import read_target
from fedkin.data.values import texts
from fedkin.errors import require, unknown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Rows:
    """The rows of a site. Nothing of it has been fitted, and nothing is told yet."""

    frame: pd.DataFrame  # the columns that are used, a row for each sample
    x: np.ndarray | None  # (N, ...) the samples themselves, where they are no rows of a table
    values: np.ndarray  # (N,) what is to be predicted: whole numbers, texts, or numbers with a fraction
    target: str  # the column of what is to be predicted
    task: Task
    parts: tuple[np.ndarray, np.ndarray, np.ndarray]  # the rows to train on, to validate with and to test with
    notes: tuple[str, ...]  # sentences for the people at the site


def read_rows(path: Path, name: str, data: Data, column: str | None, client: str | None) -> Rows:
    """Read the rows of the site `name`. Its division into parts depends on the seed and the name, and on nothing else.

    With a column of clients, or a client, only the rows of this client are read.
    """
    require(path.exists(), f"There is no file or folder {path}.")
    paths = tables_in(path) if path.is_dir() else [path]
    if path.is_dir() and column is None and client is not None:  # then a file is a client
        names = {file.stem: file for file in paths}
        require(client in names, f"{path} has no file of the client '{client}', only {', '.join(names)}.")
        paths, client = [names[client]], None
    files = [read_file(file) for file in paths]
    if column is not None or client is not None:
        column = column or CLIENT
        files = [of_client(file, column, client or name) for file in files]
    target = target_column(files, data.target)
    require(target != column, f"The column '{target}' cannot say both whose a row is and what to predict.")
    frame, x, notes = joined(files, (target, column or target))
    frame, x, without = with_target(frame, x, target)
    notes += (f"{without:,} rows without '{target}' are left out.",) if without else ()
    where = f"{path.name}, column '{target}',"
    check_no_dates(frame[target], where)
    values = target_values(frame[target])
    task = read_target(values, where, data.task, table=x is None).task
    if values.dtype.kind == "b":
        values = values.astype(str)
    if task == "regress":
        values = values.astype(np.float32)  # as samples have it
    columns = tuple(map(str, frame.columns))
    table = Table(frame.drop(columns=[one for one in (target, column) if one in columns]), columns, target, column)
    features = table.frame if x is not None else table.frame[used_columns(table, data)]
    parts = split(np.arange(len(values)), data.test, data.validation, data.seed, name)
    return Rows(features, x, values, target, task, parts, notes)


def of_client(file: File, column: str, client: str) -> File:
    """Return the rows of one client of a file that several have."""
    has = column in file.frame.columns
    require(has, f"{file.name} has no column '{column}' that says whose a row is; set 'client-column'.")
    whose = texts(file.frame[column])
    mine = whose == client
    if not mine.any():
        raise unknown("client", client, {str(one) for one in whose})
    x = None if file.x is None else file.x[mine]
    return File(file.name, file.frame[mine].reset_index(drop=True), x, file.notes)
