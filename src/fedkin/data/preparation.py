"""How the rows of a table become samples: a record of names and fitted numbers, and the function that applies it.

`fitting.py` makes the record from training rows. It is plain JSON:

    task, target, labels    "classify" or "regress", the column to predict, and the names of the classes
    client, standardise     the column of the sites, if there is one, and how numbers were scaled: none, site or all
    columns                 what became of every column of the table: name, kind, and `said`, the words for the user
    features                what each feature is:
        {"column": "age", "is": "number"}                     (value - shift) / scale, filled first where missing
        {"column": "admitted", "is": "date", "format": ...}   days since 1970-01-01, then as a number
        {"column": "age", "is": "missing"}                    1 where the value is missing, else 0
        {"column": "ward", "is": "category", "value": "A"}    1 where the value, as text, is "A"
        {"column": "ward", "is": "other", "values": ["A"]}    1 where the value is present and none of the named ones
    sites, all              a number for each feature under `fill`, `shift` and `scale`, and `target_shift` and
                            `target_scale` to regress: of each site, and of all sites for a row of no known site
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fedkin.data.values import dates, numbers, texts
from fedkin.errors import require

if TYPE_CHECKING:
    import pandas as pd

Preparation = dict[str, Any]


def apply(preparation: Preparation, frame: pd.DataFrame, site: str | None) -> np.ndarray:  # (rows, features) float32
    """The samples of these rows of a table at this site. A site that is not known counts as none.

    Training rows, test rows and rows to predict all become samples by this function.
    """
    return scaled(encoded(preparation, frame), preparation["sites"].get(site, preparation["all"]))


def encoded(preparation: Preparation, frame: pd.DataFrame) -> np.ndarray:  # (rows, features) float64
    """The features before they are filled and scaled: numbers and days with nan where missing, and zeros and ones."""
    features = preparation["features"]
    names = {feature["column"]: None for feature in features}
    lacking = [name for name in names if name not in frame.columns]
    require(
        not lacking, f"The table lacks the column {', '.join(lacking)}; it has {', '.join(map(str, frame.columns))}."
    )
    formats = {feature["column"]: feature["format"] for feature in features if feature["is"] == "date"}
    measured = {feature["column"] for feature in features if feature["is"] == "number"}
    result = np.zeros((len(frame), len(features)))
    before, value, missing = None, np.zeros(0), np.zeros(0)
    for place, feature in enumerate(features):
        name = feature["column"]
        if name != before:  # the features of one column stand together
            before, column = name, frame[name]
            if name in formats:
                value = dates(column, formats[name])
            else:
                value = numbers(column) if name in measured else texts(column)
            missing = np.isnan(value) if value.dtype.kind == "f" else np.array([text is None for text in value], bool)
        result[:, place] = _feature(feature, value, missing)
    return result


def _feature(feature: dict[str, Any], value: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """One feature. `value` has what its column says, and `missing` where it says nothing."""
    if feature["is"] == "missing":
        return missing
    if feature["is"] == "category":
        return np.asarray(value == feature["value"])
    if feature["is"] == "other":
        named = set(feature["values"])
        return np.array([text is not None and text not in named for text in value], dtype=bool)
    return value


def scaled(features: np.ndarray, fitted: dict[str, Any]) -> np.ndarray:  # (rows, features) float32
    """What `encoded` gives, filled where missing and scaled by these fitted numbers."""
    fill, shift, scale = (np.array(fitted[name], dtype=np.float64) for name in ("fill", "shift", "scale"))
    filled = np.where(np.isnan(features), fill, features)
    return np.asarray((filled - shift) / scale, dtype=np.float32)


def targets(preparation: Preparation, column: pd.Series, site: str | None) -> np.ndarray:  # (rows,)
    """What is to be predicted, as in training: class numbers, int64 and -1 for an unknown class; or numbers, float32.

    Numbers are shifted and scaled as at this site, and nan where missing.
    """
    if preparation["task"] == "regress":
        fitted = preparation["sites"].get(site, preparation["all"])
        standard = (numbers(column) - fitted["target_shift"]) / fitted["target_scale"]
        return np.asarray(standard, dtype=np.float32)
    number = {label: place for place, label in enumerate(preparation["labels"])}
    return np.array([number.get(text, -1) for text in texts(column)], dtype=np.int64)
