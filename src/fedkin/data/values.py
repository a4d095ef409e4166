"""Reads the values of one column of a table as numbers, as dates or as text.

Training rows, test rows and rows to predict all go through these functions, so a value means the same everywhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from fedkin.errors import require

if TYPE_CHECKING:
    import pandas as pd

MARKS = ("", "?", "-", "--", ".", "NA", "N/A", "n/a", "na", "#N/A", "n.a.", "NaN", "nan", "NULL", "null", "<NA>")
WORDS = {"unknown", "none", "missing", "not known", "not available", "unk", "nil", "nd", "n.d.", "not done"}
BOOLEANS = {"true": 1.0, "false": 0.0}
# of each kind the first that reads most values is used, so where 03/04/2024 could be either the day comes first
DATES = ("ISO8601", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%d.%m.%y", "%Y/%m/%d", "%d %b %Y", "%b %d, %Y")
TIMES = ("", " %H:%M", " %H:%M:%S")
SECONDS = 86_400.0  # of a day
DECIMAL_COMMA = re.compile(r"\s*(-?\d+),(\d+)\s*")

LARGEST = 1e30  # of a number to learn from: its square fits into a number, and it fits into a float32

_marks = {mark.lower() for mark in MARKS}


def texts(column: pd.Series) -> np.ndarray:  # (rows,) object
    """The values as text without spaces around it, None where a value is missing. 2.0 is written '2'."""
    different, place = distinct_texts(column)
    return np.asarray(different[place])


def distinct_texts(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """The different values as text, (k,) object, some perhaps alike, and which of them each row has, (rows,).

    A long column has few different values as a rule, so each of them is looked at once.
    """
    import pandas as pd

    values = column.astype(object)
    try:
        place, different = pd.factorize(values, use_na_sentinel=False)
    except TypeError:  # lists and the like, which are not hashable
        place, different = pd.factorize(values.map(_text), use_na_sentinel=False)
    read = np.empty(len(different), dtype=object)
    read[:] = [_text(value) for value in different]
    return read, place


def _text(value: object) -> str | None:
    if value is None or (isinstance(value, float) and value != value) or str(value) in ("NaT", "<NA>"):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value).strip()
    return None if text.lower() in _marks else text


def numbers(column: pd.Series) -> np.ndarray:  # (rows,) float64
    """The values as numbers, nan where a value is missing, infinite or no number. True is 1 and false 0."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):  # booleans are among these
        found = np.array(column.to_numpy(dtype=np.float64, na_value=np.nan))
    else:
        different, place = distinct_texts(column)
        plain = [None if text is None else BOOLEANS.get(text.lower(), text) for text in different]
        read = np.array(pd.to_numeric(pd.Series(plain, dtype=object), errors="coerce"), dtype=np.float64)
        found = read[place]
    found[~np.isfinite(found)] = np.nan
    check_size(found, f"The column '{column.name}'")
    return found


def check_size(values: np.ndarray, what: str) -> None:
    """Refuse numbers that are too large to be learned from; those that are not finite are somebody else's business."""
    if values.dtype.kind != "f" or values.dtype.itemsize < 4:
        return
    large = np.abs(values[np.isfinite(values)])
    most = float(large.max()) if large.size else 0.0
    require(most <= LARGEST, f"{what} has the number {most:.3g}, which is too large to learn from; divide all by it.")


def dates(column: pd.Series, format: str = "ISO8601") -> np.ndarray:  # (rows,) float64
    """The values as days since 1970-01-01, nan where a value is missing or no date of this format."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column):
        moments = pd.to_datetime(column, utc=True)
    else:
        different, place = distinct_texts(column)
        plain = pd.Series(different, dtype=object)
        moments = pd.to_datetime(plain, format=format, errors="coerce", utc=True).take(place)
    since = (moments - pd.Timestamp("1970-01-01", tz="UTC")).dt.total_seconds()
    return np.asarray(since.to_numpy(dtype=np.float64) / SECONDS)


def date_format(known: np.ndarray, share: float) -> str | None:
    """The format that reads most of these texts as dates; None if no format reads a `share` of them."""
    import pandas as pd

    looked = pd.Series([text for text in known if text is not None][:1000], dtype=object)
    if not len(looked) or not looked.str.contains(r"\d").mean() >= share:
        return None
    formats = [DATES[0], *(day + time for day in DATES[1:] for time in TIMES)]
    read = {
        format: pd.to_datetime(looked, format=format, errors="coerce", utc=True).notna().mean() for format in formats
    }
    best = max(read, key=lambda format: read[format])
    return best if read[best] >= share else None


def with_points(column: pd.Series, as_text: bool) -> pd.Series:
    """The column with numbers such as 12,5 written 12.5; as numbers if all its values are, unless it stays `as_text`.

    The scripts of exported models have the same rule.
    """
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column
    found = {value: DECIMAL_COMMA.fullmatch(value) for value in column.unique() if isinstance(value, str)}
    points = {value: f"{match[1]}.{match[2]}" for value, match in found.items() if match}
    if not points:
        return column
    written = column.map(lambda value: points.get(value, value))
    if as_text:
        return written
    try:
        return pd.to_numeric(written)
    except ValueError:
        return written


def has_decimal_commas(known: np.ndarray, share: float) -> bool:
    """Whether these texts look like numbers with a decimal comma, such as 12,5."""
    import pandas as pd

    present = pd.Series([text for text in known if text is not None], dtype=object)
    commas = present.str.fullmatch(r"[+-]?[\d.]*\d,\d+")
    whole = present.str.fullmatch(r"[+-]?\d+")
    return bool(commas.any()) and bool((commas | whole).mean() >= share)
