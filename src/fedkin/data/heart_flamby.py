"""FLamby's Fed-Heart-Disease: the patients of `heart` without missing values, prepared and divided as FLamby does it.

One thing differs. A feature that is the same for all training patients of a hospital is divided by 1 here. FLamby
divides it by 0 + 1e-9, so that a test patient with another value gets a feature of 1e9, which alone decides the answer.
In FLamby's own split there is no such patient; in other splits the small Swiss hospital has some.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fedkin.data.heart import heart
from fedkin.data.preparation import Preparation, encoded
from fedkin.data.samples import Samples

if TYPE_CHECKING:
    import pandas as pd

UNUSED = ("slope", "ca", "thal")  # columns in which most hospitals have no values
CODES = {"cp": "234", "restecg": "12"}  # the codes that become a feature: all but the first
STATE = 43  # the random state of FLamby's split; split s has STATE + s
SHARE = 0.66  # of each hospital's patients are for training
LEAST = 3  # patients of each class are needed to stratify
TINY = 1e-9


def heart_flamby() -> Samples:
    """The 740 patients without missing values in ten columns, which become 13 features."""
    samples = heart()
    assert samples.table is not None
    assert samples.owner is not None
    frame = samples.table.frame.drop(columns=list(UNUSED))
    rows = np.flatnonzero(frame.notna().all(axis=1).to_numpy())
    columns = tuple(name for name in samples.table.columns if name not in UNUSED)
    complete = frame.iloc[rows].reset_index(drop=True)
    return replace(
        samples,
        x=torch.zeros(len(rows), 0),
        y=samples.y[torch.from_numpy(rows)],
        owner=samples.owner[rows],
        source=samples.source | {"rows": {"train": len(rows)}, "prepared": "as FLamby's Fed-Heart-Disease"},
        table=replace(samples.table, frame=complete, columns=columns, fit=fitted),
        division=divided,
    )


def divided(rows: np.ndarray, labels: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
    """A hospital's training and test rows in this split, stratified by the diagnosis where both classes are there."""
    from sklearn.model_selection import train_test_split

    ill = labels[rows]
    stratify = ill if np.bincount(ill, minlength=2).min() >= LEAST else None
    sizes = {"train_size": SHARE, "test_size": 1.0 - SHARE}
    train, test = train_test_split(np.arange(len(rows)), **sizes, random_state=STATE + number, stratify=stratify)
    return rows[np.sort(train)], rows[np.sort(test)]


def fitted(frame: pd.DataFrame, rows: Mapping[str, np.ndarray]) -> Preparation:
    """The features, and shift and scale of all of them, by the training rows of each hospital and of all."""
    features: list[dict[str, Any]] = [{"column": str(one), "is": "number"} for one in frame.columns if one not in CODES]
    features += [{"column": one, "is": "category", "value": code} for one, codes in CODES.items() for code in codes]
    said = [{"name": str(one), **_words(str(one))} for one in frame.columns]
    sites = {name: _numbers(encoded({"features": features}, frame.iloc[mine])) for name, mine in rows.items()}
    everyone = _numbers(encoded({"features": features}, frame.iloc[np.concatenate(list(rows.values()))]))
    return {"standardise": "site", "columns": said, "features": features, "sites": sites, "all": everyone}


def _words(name: str) -> dict[str, str]:
    """What became of a column."""
    if name not in CODES:
        return {"kind": "number", "said": "number, standardised"}
    return {"kind": "category", "said": f"{len(CODES[name]) + 1} categories without the first, standardised"}


def _numbers(table: np.ndarray) -> dict[str, Any]:
    """fill, shift and scale of each feature, by these training rows."""
    mean, deviation = table.mean(0), table.std(0, ddof=1)
    scale = np.where(deviation > 0, deviation + TINY, 1.0)
    known = {"fill": mean.tolist(), "shift": mean.tolist(), "scale": scale.tolist()}
    return known | {"target_shift": 0.0, "target_scale": 1.0}
