"""The heart patients of four hospitals, which come with fedkin; `tables/heart_attribution.txt` says whose they are."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from fedkin.data.read_files import read_file
from fedkin.data.samples import Samples, Table
from fedkin.data.values import texts

if TYPE_CHECKING:
    import pandas as pd

CLIENT, DIAGNOSIS, TARGET = "hospital", "num", "disease"
CODES = ("cp", "restecg", "slope", "thal")  # whole numbers that stand for categories
LABELS = ("no disease", "disease")


def heart() -> Samples:
    """All 920 patients; a client is a hospital, and what is to be predicted is whether a patient has the disease."""
    frame = patients()
    diagnosis = frame[DIAGNOSIS].to_numpy()
    hospital = texts(frame[CLIENT])
    owners, owner = np.unique(hospital.astype(str), return_inverse=True)
    features = frame.drop(columns=[CLIENT, DIAGNOSIS]).astype(dict.fromkeys(CODES, "category"))
    columns = tuple(TARGET if name == DIAGNOSIS else str(name) for name in frame.columns)
    return Samples(
        x=torch.zeros(len(frame), 0),
        y=torch.from_numpy((diagnosis > 0).astype(np.int64)),
        classes=len(LABELS),
        owner=owner.reshape(-1).astype(np.int64),
        owners=tuple(owners.tolist()),
        source={"kind": "package", "id": "heart.csv", "rows": {"train": len(frame)}, "licence": "CC BY 4.0"},
        labels=LABELS,
        table=Table(features, columns, TARGET, CLIENT),
    )


def patients() -> pd.DataFrame:
    """The table as it comes with fedkin."""
    with as_file(files("fedkin.data") / "tables" / "heart.csv") as path:
        return read_file(path).frame


def hospital_files(folder: Path | str) -> dict[str, Path]:
    """Write a CSV file for each hospital, as if it were that hospital's own, and return the files by its name.

    Codes are written as text (cp 1, cp 2, ...), so that they are read as categories, and the disease as yes or no.
    """
    frame = patients()
    for code in CODES:
        frame[code] = [None if text is None else f"{code} {text}" for text in texts(frame[code])]
    frame[DIAGNOSIS] = np.where(frame[DIAGNOSIS] > 0, "yes", "no")
    frame = frame.rename(columns={DIAGNOSIS: TARGET})
    found = {}
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, mine in frame.groupby(CLIENT, sort=True):
        found[str(name)] = Path(folder) / f"{name}.csv"
        mine.drop(columns=CLIENT).to_csv(found[str(name)], index=False)
    return found
