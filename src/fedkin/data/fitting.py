"""Fits a table's preparation with scikit-learn, on training rows only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedkin.data.columns import Column, decided
from fedkin.data.preparation import Preparation, encoded
from fedkin.data.site_numbers import means_and_scales, medians

if TYPE_CHECKING:
    import pandas as pd

RARE = 0.01  # a category of a smaller share of the training rows is rare, and so is one of a single row
CATEGORIES = 50  # the most categories of one column, rare ones together included


def fit_features(
    frame: pd.DataFrame, rows: Mapping[str, np.ndarray], standardise: str, asked: Sequence[str] = ()
) -> Preparation:
    """What the columns of the table are, which features they give, and the fitted numbers of each site and of all.

    `rows` has the training rows of each site, and no other row is looked at. `asked` are columns that the user named as
    features. Which features there are is agreed over the training rows of all sites; the numbers are each site's own,
    or with `standardise="all"` those of all sites.
    """
    site = np.repeat(np.arange(len(rows)), [len(mine) for mine in rows.values()])
    training = frame.iloc[np.concatenate(list(rows.values()))]
    columns = [decided(training[name], site, name in asked) for name in frame.columns]
    features: list[dict[str, Any]] = []
    said = []
    for column in columns:
        made, words = _features_of(column, training[column.name], standardise)
        features += made
        said.append({"name": column.name, "kind": column.kind if made else "left out", "said": words})
    table = encoded({"features": features}, training)  # (training rows, features)
    measured = np.array([feature["is"] in ("number", "date") for feature in features], dtype=bool)
    common = fitted_numbers(table, measured, standardise)
    if standardise == "all":
        sites = dict.fromkeys(rows, common)
    else:
        sizes = np.array([len(mine) for mine in rows.values()], dtype=np.int64)
        sites = dict(zip(rows, fitted_sites(table, sizes, measured, standardise, common), strict=True))
    return {"standardise": standardise, "columns": said, "features": features, "sites": sites, "all": common}


def _features_of(column: Column, values: pd.Series, standardise: str) -> tuple[list[dict[str, Any]], str]:
    """The features of a column, and the words for the user."""
    end = f"; {column.note}" if column.note else ""
    if column.kind == "left out":
        return [], column.said + end
    value = column.read(values)
    missing = int(np.isnan(value).sum()) if value.dtype.kind == "f" else sum(text is None for text in value)
    indicator = [{"column": column.name, "is": "missing"}] if missing else []
    if column.kind != "category":
        feature = {"column": column.name, "is": column.kind} | ({"format": column.format} if column.format else {})
        how = "" if standardise == "none" else ", standardised"
        filled = f"; {missing:,} missing, filled with the median" if missing else ""
        return [feature, *indicator], f"{column.said}{how}{filled}{end}"
    named, rare = categories([text for text in value if text is not None])
    if not named:
        return [], f"left out, none of its {rare:,} values is frequent{end}"
    features: list[dict[str, Any]] = [{"column": column.name, "is": "category", "value": one} for one in named]
    if rare:
        features.append({"column": column.name, "is": "other", "values": named})
    words = f"{len(named):,} {'category' if len(named) == 1 else 'categories'}"
    words += f", {rare:,} rare {'one' if rare == 1 else 'ones together'} as other" if rare else ""
    return [*features, *indicator], f"{words}{f'; {missing:,} missing' if missing else ''}{end}"


def categories(present: Sequence[str]) -> tuple[list[str], int]:
    """The categories that get a feature of their own, sorted, and the number of rare ones."""
    encoder = one_hot(len(present)).fit(np.array(present, dtype=str)[:, None])
    rare = encoder.infrequent_categories_[0]
    few = set() if rare is None else set(rare)
    return [str(one) for one in encoder.categories_[0] if one not in few], len(few)


def one_hot(rows: int) -> Any:
    """scikit-learn's encoder of one column with so many values, in which rare and unseen categories count as other."""
    from sklearn.preprocessing import OneHotEncoder

    least = max(2, int(np.ceil(RARE * rows)))
    return OneHotEncoder(
        min_frequency=least, max_categories=CATEGORIES, handle_unknown="infrequent_if_exist", sparse_output=False
    )


def fitted_sites(
    table: np.ndarray, sizes: np.ndarray, measured: np.ndarray, standardise: str, common: dict[str, Any]
) -> list[dict[str, Any]]:
    """What `fitted_numbers` gives for each site, of all sites at once. `table` has their training rows, one site after
    another, and `sizes` how many each has."""
    n, k = len(sizes), table.shape[1]
    fill, shift, scale = np.zeros((n, k)), np.zeros((n, k)), np.ones((n, k))
    fill[:, measured] = medians(table[:, measured], sizes)
    missing = np.isnan(table)
    filled = np.where(missing, np.repeat(fill, sizes, axis=0), table)[:, measured]
    if standardise != "none":
        shift[:, measured], scale[:, measured] = means_and_scales(filled, sizes)
    ends = np.cumsum(sizes)
    values = np.concatenate([np.zeros((1, k), dtype=np.int64), np.cumsum(~missing, axis=0)])  # how many so far
    empty = measured & (values[ends] == values[ends - sizes])  # (n, features)
    for numbers, all_sites in ((shift, common["shift"]), (scale, common["scale"])):
        numbers[empty] = np.broadcast_to(all_sites, (n, k))[empty]
    fill[empty] = (np.broadcast_to(common["fill"], (n, k)) if standardise == "none" else shift)[empty]
    target = {"target_shift": 0.0, "target_scale": 1.0}
    lists = zip(fill.tolist(), shift.tolist(), scale.tolist(), strict=True)
    return [{"fill": one, "shift": two, "scale": three} | target for one, two, three in lists]


def fitted_numbers(
    table: np.ndarray, measured: np.ndarray, standardise: str, common: dict[str, Any] | None = None
) -> dict[str, Any]:
    """fill, shift and scale of each feature, by these training rows. Only measured features are filled and scaled.

    A feature without a value here takes the numbers of all sites, `common`: it has none of its own, and its missing
    values become 0. A feature that is constant here has scale 1.
    """
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    k = table.shape[1]
    fill, shift, scale = np.zeros(k), np.zeros(k), np.ones(k)
    if measured.any():
        imputer, scaler = SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
        make_pipeline(imputer, scaler).fit(table[:, measured])
        fill[measured] = imputer.statistics_
        if standardise != "none":
            shift[measured], scale[measured] = scaler.mean_, scaler.scale_
    empty = measured & np.isnan(table).all(0)
    if common is not None and empty.any():
        shift[empty], scale[empty] = np.array(common["shift"])[empty], np.array(common["scale"])[empty]
        fill[empty] = (np.array(common["fill"]) if standardise == "none" else shift)[empty]
    return {"fill": fill.tolist(), "shift": shift.tolist(), "scale": scale.tolist()} | {
        "target_shift": 0.0,
        "target_scale": 1.0,
    }
