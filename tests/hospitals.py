"""A table as hospitals would have it: twelve sites, columns of every kind, and two sites whose labels are wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

MISLABELLED = ("Hospital 4", "Hospital 9")
WARDS = ("cardiology", "surgery", "geriatrics", "intensive care", "oncology", "neurology", "eye clinic")


def hospitals(seed: int = 0, sizes: tuple[int, int] = (60, 400), wrong: tuple[str, ...] = MISLABELLED) -> pd.DataFrame:
    """A row for each patient of twelve hospitals; the outcomes of the hospitals `wrong` are exchanged."""
    rng = np.random.default_rng(seed)
    tables = [_one(rng, f"Hospital {number}", int(rng.integers(*sizes))) for number in range(1, 13)]
    frame = pd.concat(tables, ignore_index=True)
    turned = frame["outcome"].map({"recovered": "readmitted", "readmitted": "recovered"})
    frame["outcome"] = turned.where(frame["hospital"].isin(wrong), frame["outcome"])
    frame.insert(0, "patient_id", [f"P{number:05d}" for number in rng.permutation(len(frame))])
    return frame


def write_hospitals(path: Path, seed: int = 0) -> Path:
    hospitals(seed).to_csv(path, index=False)
    return path


def _one(rng: np.random.Generator, name: str, size: int) -> pd.DataFrame:
    """The patients of one hospital. What makes a patient come back is the same everywhere, but for a small shift."""
    age = rng.normal(62 + rng.normal(0, 5), 14, size).clip(18, 98).round()
    creatinine = rng.lognormal(4.4, 0.35, size).round(1)
    albumin = rng.normal(38, 5, size).round(1)
    ward = rng.choice(WARDS, size, p=rng.dirichlet(np.full(len(WARDS), 2.0)))
    emergency = rng.random(size) < 0.45
    smoker = rng.choice(["yes", "no", "former"], size, p=[0.2, 0.5, 0.3])
    effect = dict(zip(WARDS, (0.9, -0.6, 0.7, 1.2, 0.4, 0.0, -1.6), strict=True))
    risk = 0.9 * (age - 62) / 14 + 1.1 * (np.log(creatinine) - 4.4) / 0.35 - 1.0 * (albumin - 38) / 5
    risk += np.vectorize(effect.get)(ward) + 0.9 * emergency + 0.8 * (smoker == "yes") + rng.normal(0, 0.3)
    outcome = np.where(rng.random(size) < 1 / (1 + np.exp(-1.5 * (risk - 0.4))), "readmitted", "recovered")
    frame = pd.DataFrame(
        {
            "hospital": name,
            "age": age,
            "ward": ward,
            "emergency": emergency,
            "smoker": smoker,
            "creatinine": creatinine,
            "albumin": albumin,
            "admitted": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, size), unit="D"),
            "country": "NL",
            "outcome": outcome,
        }
    )
    frame["admitted"] = frame["admitted"].dt.strftime("%Y-%m-%d")
    for column, share in (("albumin", 0.2), ("smoker", 0.1), ("creatinine", 0.03)):
        frame[column] = frame[column].mask(rng.random(size) < share)
    return frame
