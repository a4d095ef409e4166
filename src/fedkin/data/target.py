"""Reads what is to be predicted: the classes of samples with their names, or numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedkin.data.federation import Task
from fedkin.data.values import check_size
from fedkin.errors import require

EXACT = 2.0**53  # whole numbers below it are floats without a loss
LARGEST = 1000  # whole numbers from 0 up to below this are class numbers; larger ones are names of classes
# more whole numbers than this may be a quantity, unless they come as an array of 0, 1, 2, ..., each in many rows
MANY, SHARE = 20, 0.05


@dataclass(frozen=True)
class Target:
    """What is to be predicted of each sample."""

    y: np.ndarray  # (N,) int64 class numbers, or float64 to regress
    task: Task
    listed: list[Any]  # the label that each class number stands for, as in the data
    labels: tuple[str, ...] = ()  # names of the classes; empty if their names are their numbers

    @property
    def classes(self) -> int:
        """The number of classes, or 1 to regress: the number of outputs of a network."""
        return 1 if self.task == "regress" else len(self.listed)


def read_target(values: np.ndarray, where: str, task: str | None = None, table: bool = False) -> Target:
    """The target of these values: text, true and false, or numbers, none of them missing.

    Numbers with a fraction are to be regressed, text and few whole numbers are classes, and of many whole numbers the
    user says which is meant, by `task`. Whole numbers from 0 on are class numbers; other labels, such as text or -1 and
    1, are numbered in sorted order and keep their names. `where` names the values in errors. `table` says that they are
    a column of a table: many whole numbers from 0 on are then no class numbers either, but may be days of a stay.
    """
    require(len(values), f"{where} has no samples.")
    numeric = values.dtype.kind in "fiu"
    require(numeric or values.dtype.kind in "bUSO", f"{where} is neither classes nor numbers, but {values.dtype}.")
    if values.dtype.kind == "f":
        require(np.isfinite(values).all(), f"{where} has a label that is missing or not a finite number.")
        check_size(values, where)
        whole = bool((values == np.rint(values)).all())
        if not whole and task != "classify":
            return Target(values.astype(np.float64), "regress", [])
        odd = values[values != np.rint(values)]
        require(
            whole, f"{where} has labels that are not classes, such as {odd[0] if len(odd) else ''}; say --task regress."
        )
        most = float(np.abs(values).max())
        inexact = (
            f"{where} has labels such as {most:.3g}, which are inexact; say --task regress, or write them as text."
        )
        require(task == "regress" or most < EXACT, inexact)
        values = values if task == "regress" else values.astype(np.int64)
    if values.dtype.kind == "u":
        require(values.max() < 2**63, f"{where} has the label {values.max()}, which is too large; write it as text.")
    if task == "regress":
        require(numeric, f"{where} has text such as '{values[0]}', which is no number to regress; say --task classify.")
        return Target(values.astype(np.float64), "regress", [])
    names, y = np.unique(values, return_inverse=True)
    if task is None:
        _check_number_of_classes(names, len(values), where, numeric, table)
    if numeric and names[0] == 0 and names[-1] < LARGEST:
        return Target(values.astype(np.int64), "classify", list(range(int(names[-1]) + 1)))
    listed = names.tolist()
    return Target(y.reshape(-1).astype(np.int64), "classify", listed, tuple(str(name) for name in listed))


def _check_number_of_classes(names: np.ndarray, rows: int, where: str, numeric: bool, table: bool) -> None:
    """Refuse values that are too many to be taken for classes, since the user has not said that they are."""
    classes = len(names)
    if classes <= MANY:
        return
    if numeric:
        numbered = not table and names[0] == 0 and names[-1] == classes - 1 and classes <= SHARE * rows
        require(
            numbered,
            f"{where} has {classes:,} different whole numbers in {rows:,} rows, which may be classes or a quantity; "
            "say --task classify or --task regress (in Python, task=).",
        )
    else:
        require(
            classes <= rows / 2,
            f"{where} has {classes:,} different texts in {rows:,} rows, which are hardly classes; choose another "
            "--target-column, or say --task classify (in Python, task=).",
        )
