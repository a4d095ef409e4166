"""Makes the samples of a site of its rows, as sites have agreed; what is fitted, is fitted to its own training rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fedkin.data.columns import kind_of
from fedkin.data.federation import Federation, Index
from fedkin.data.fitting import fitted_sites
from fedkin.data.preparation import Preparation, encoded, scaled
from fedkin.data.site_numbers import means_and_scales
from fedkin.errors import require
from fedkin.sites.columns import WORDS, Column, features_of
from fedkin.sites.rows import Rows

if TYPE_CHECKING:
    import pandas as pd


def made(name: str, rows: Rows, told: Sequence[Column], agreed: dict[str, Any], standardise: str) -> Federation:
    """Return the samples of a site as a federation with one client. `told` is what it told of its columns."""
    preparation = prepared(name, rows, told, agreed, standardise)
    numbers, regress = preparation["all"], rows.task == "regress"
    train, validation, test = (Index.of([part]) for part in rows.parts)
    y = (
        (rows.values.astype(np.float64) - numbers["target_shift"]) / numbers["target_scale"]
        if regress
        else class_numbers(rows, agreed)
    )
    return Federation(
        name="site",
        x=torch.from_numpy(scaled(encoded(preparation, filled(rows, told, preparation["columns"])), numbers)),
        y=torch.from_numpy(y.astype(np.float32 if regress else np.int64)),
        classes=agreed["classes"],
        train=train,
        validation=validation if len(validation.rows) else None,
        test=test,
        clients=(name,),
        task=rows.task,
        labels=tuple(agreed["labels"]),
        target_scale=torch.tensor([numbers["target_scale"]]) if regress else None,
        preparation=preparation,
        notes=rows.notes,
    )


def check_agreed(agreed: dict[str, Any], told: dict[str, Any]) -> None:
    """Refuse an agreement that does not fit what this site told."""
    for name in ("target", "task", "standardise"):
        require(agreed.get(name) == told[name], f"This site's {name} is '{told[name]}'; the server asks for another.")
    columns, labels, classes = (agreed.get(name) for name in ("columns", "labels", "classes"))
    formed = isinstance(labels, list) and isinstance(classes, int) and isinstance(columns, list)
    formed = formed and all(map(agreed_well, columns or []))
    require(formed, "The agreement does not say which columns and classes there are.")
    kinds = {column["name"]: column["kind"] for column in columns or []}
    for column in told["columns"]:
        kind = kinds.get(column["name"])
        fits = kind == "left out" or column["kind"] in ("empty", kind)
        require(fits, f"This site's column '{column['name']}' is {column['kind']}; the server asks for another kind.")
    names = [str(label) for label in labels or range(classes or 0)]
    unknown = any(str(label) not in names for label in told["labels"])
    require(not unknown, "This site has classes that the server does not know of.")


def agreed_well(column: Any) -> bool:
    """Whether a column of an agreement has all that features are made of."""
    if not isinstance(column, dict) or not isinstance(column.get("name"), str):
        return False
    named, kind = column.get("categories"), column.get("kind")
    texts = isinstance(named, list) and all(isinstance(one, str) for one in named)
    flags = all(isinstance(column.get(flag), bool) for flag in ("missing", "other"))
    return kind in ("left out", "target") or (kind in WORDS and texts and flags)


def class_numbers(rows: Rows, agreed: dict[str, Any]) -> np.ndarray:
    """Return the class of each row, by the numbers that sites agreed on."""
    values = rows.values if rows.values.dtype.kind == "U" else rows.values.astype(np.int64)
    place = {label: number for number, label in enumerate(agreed["labels"])}
    return np.array([place[str(value)] for value in values], dtype=np.int64) if place else values


def filled(rows: Rows, told: Sequence[Column], columns: Sequence[Column]) -> pd.DataFrame:
    """Return the rows with the agreed columns; those that this site lacks, or has no training value of, are empty."""
    import pandas as pd

    have = {column["name"] for column in told if column["kind"] != "empty"}
    nothing = pd.Series([None] * len(rows.frame), dtype=object, index=rows.frame.index)
    names = [column["name"] for column in columns]
    return pd.DataFrame({name: rows.frame[name] if name in have else nothing for name in names}, rows.frame.index)


def prepared(name: str, rows: Rows, told: Sequence[Column], agreed: dict[str, Any], standardise: str) -> Preparation:
    """Return how a row of this site becomes a sample, with numbers that are fitted to its own training rows."""
    columns = [column for column in agreed["columns"] if column["kind"] in WORDS]
    training = filled(rows, told, columns).iloc[rows.parts[0]]
    dates = [kind_of(training[column["name"]]) for column in columns if column["kind"] == "date"]
    features = features_of(columns, {date.name: date.format or "ISO8601" for date in dates})
    measured = np.array([feature["is"] in ("number", "date") for feature in features], dtype=bool)
    zero, one = np.zeros(len(features)), np.ones(len(features))
    nothing = {"fill": zero, "shift": zero, "scale": one}  # of columns without a value here
    table, size = encoded({"features": features}, training), np.array([len(training)])
    numbers = fitted_sites(table, size, measured, standardise, nothing)[0]
    if rows.task == "regress" and standardise == "site":
        shift, scale = means_and_scales(rows.values[rows.parts[0]].astype(np.float64)[:, None], size)
        numbers |= {"target_shift": float(shift[0, 0]), "target_scale": float(scale[0, 0])}
    about = {"task": rows.task, "target": rows.target, "client": None, "labels": agreed["labels"]}
    about |= {"standardise": standardise, "columns": columns, "features": features}
    return about | {"sites": {name: numbers}, "all": numbers}
