"""Decides what each column of a table is: a number, a date, a category, or left out.

The rules look at training rows only.

- A column without a value, or with one value in every row, is left out.
- A column of pandas' type category, as Parquet files can have, is a category, also if it holds numbers.
- A column is a number if at least nine in ten of its values are numbers or true and false; the others count as missing.
- Else it is a date if nine in ten of its values are dates of one format; else it is a category.
- A number is left out as an id if it is whole and unique (among the rows of a site), the table has 50 rows or more, and
  either its name looks like an id or its values are nearly consecutive. So unique ages in a small table stay.
- A category is left out if it is different in every row, or has more than 20 values and more than half as many as rows.

A column that the user names as a feature is never left out as an id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedkin.data.values import BOOLEANS, WORDS, date_format, dates, has_decimal_commas, numbers, texts

if TYPE_CHECKING:
    import pandas as pd

MOST = 0.9  # the share of a column's values that decides what the column is
ROWS = 50  # smaller tables may have a column of different whole numbers that is no id, such as ages
SITE = 20  # training rows from which on a site can show that its values are consecutive
DENSE = 2.0  # values are nearly consecutive if they fill at least half of their range
FEW = 20  # a category with more values than this must repeat them
ID = re.compile(
    r"(^|[\W_])(id|ids|nr|no|num|number|key|uuid|guid|index|idx|mrn|pid)($|[\W_])|[a-z]I[Dd]$|^unnamed", re.I
)

EMPTY, CONSTANT = "left out, no values", "left out, constant"
COMMAS = "look like numbers with decimal commas, which are to be written with points"

Kind = Literal["number", "date", "category", "left out"]


@dataclass(frozen=True)
class Column:
    """What a column is. `said` are the words for the user."""

    name: str
    kind: Kind
    said: str
    note: str = ""  # what else the user should know, after the words about scaling
    format: str | None = None  # of a date

    def read(self, column: pd.Series) -> np.ndarray:
        """The values of a number or a date, (rows,) float64, or of a category, (rows,) object."""
        if self.kind == "date":
            return dates(column, self.format or "ISO8601")
        return numbers(column) if self.kind == "number" else texts(column)


def decided(column: pd.Series, site: np.ndarray, asked: bool) -> Column:
    """What this column is, by its training rows. `site` is the number of each row's site.

    `asked` says that the user named the column as a feature.
    """
    found = kind_of(column)
    if found.kind == "number":
        return _checked_number(found, found.read(column), site, asked)
    if found.kind == "date":
        return _checked_date(found, found.read(column))
    return checked_category(found, found.read(column)) if found.kind == "category" else found


def kind_of(column: pd.Series) -> Column:
    """What the values of this column are, also where the column will be left out; 'left out' without any value."""
    import pandas as pd

    name = str(column.name)
    if pd.api.types.is_datetime64_any_dtype(column):
        return Column(name, "date", "date", format="ISO8601")
    if pd.api.types.is_numeric_dtype(column):
        words = "true or false, as 1 and 0" if pd.api.types.is_bool_dtype(column) else "number"
        return Column(name, "number", words)
    known = texts(column)
    present = np.array([text is not None for text in known], dtype=bool)
    if not present.any():
        return Column(name, "left out", EMPTY)
    if isinstance(column.dtype, pd.CategoricalDtype):  # a number may be the code of a category
        return Column(name, "category", "categories")
    read = ~np.isnan(numbers(column))
    meant = present & (read | ~np.array([text is not None and text.lower() in WORDS for text in known], dtype=bool))
    if meant.any() and read[meant].mean() >= MOST:
        return _number_as_text(name, known[meant], read[meant])
    if (format := date_format(known, MOST)) is not None:
        order = {"%d": "day", "%m": "month", "%b": "month", "%Y": "year", "%y": "year"}
        parts = [order[part] for part in re.findall(r"%[dmbYy]", format)]
        return Column(name, "date", f"date ({', '.join(parts)})" if parts else "date", format=format)
    return Column(name, "category", "categories")


def _number_as_text(name: str, present: np.ndarray, read: np.ndarray) -> Column:
    """The column of a number that was written as text. `read` says which of its texts are numbers."""
    if all(str(text).lower() in BOOLEANS for text in present[read]):
        return Column(name, "number", "true or false, as 1 and 0")
    other = sorted(set(present[~read]))
    return Column(name, "number", "number", f"{(~read).sum():,} such as '{other[0]}' count as missing" if other else "")


def _checked_number(column: Column, value: np.ndarray, site: np.ndarray, asked: bool) -> Column:
    known = ~np.isnan(value)
    if not known.any():
        return Column(column.name, "left out", EMPTY)
    if known.all() and (value == value[0]).all():
        return Column(column.name, "left out", CONSTANT)
    if not asked and _is_id(column.name, value[known], site[known]):
        return Column(column.name, "left out", "left out, unique")
    return column


def _is_id(name: str, value: np.ndarray, site: np.ndarray) -> bool:
    import pandas as pd

    if len(value) < ROWS or (value != np.rint(value)).any():
        return False
    if pd.DataFrame({"site": site, "value": value}).duplicated().any():
        return False  # some site has a value twice
    if ID.search(name):
        return True
    whole = len(np.unique(value)) == len(value) and _dense(value)
    counts = np.bincount(site)
    return whole or (counts[counts > 0].min() >= SITE and all(_dense(value[site == one]) for one in np.unique(site)))


def like_an_id(value: np.ndarray) -> tuple[bool, bool]:
    """Whether the values of one site are whole and different, and whether they are nearly consecutive as well."""
    unique = bool((value == np.rint(value)).all()) and len(np.unique(value)) == len(value)
    return unique, unique and len(value) >= SITE and _dense(value)


def _dense(value: np.ndarray) -> bool:
    return bool(np.ptp(value) + 1 <= DENSE * len(value))


def _checked_date(column: Column, day: np.ndarray) -> Column:
    known = day[~np.isnan(day)]
    if not len(known):
        return Column(column.name, "left out", EMPTY)
    if len(known) == len(day) and (known == known[0]).all():
        return Column(column.name, "left out", CONSTANT)
    return column


def checked_category(column: Column, known: np.ndarray) -> Column:
    """The column of these texts, left out where they are all the same or hardly repeat."""
    if len(set(known)) == 1:
        return Column(column.name, "left out", CONSTANT)
    present = [text for text in known if text is not None]
    different = len(set(present))
    commas = has_decimal_commas(known, MOST)
    note = COMMAS if commas else ""
    if different == len(present) and len(present) > 2:
        return Column(column.name, "left out", "left out, unique", note)
    if different > FEW and different > len(present) / 2:
        said = f"left out, text with {different:,} values in {len(present):,} rows"
        return Column(column.name, "left out", said, note)
    return replace(column, note=note)
