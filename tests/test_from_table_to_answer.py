"""A table as it is, two commands: a verdict for each hospital, the suspicious ones named, a model without fedkin."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from hospitals import MISLABELLED, write_hospitals

HEART = Path(__file__).parents[1] / "src" / "fedkin" / "data" / "tables" / "heart.csv"
BUDGET = ["--rounds", "15", "--set", "eta=0.05", "--set", "train.steps=10"]
VERDICT = r"{}: (join, with \w+|stay alone|no clear difference|too few test rows to tell)"
WITHOUT_FEDKIN = """
import runpy, sys
sys.modules["fedkin"] = None  # importing it fails
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def predicted(folder: Path, rows: pd.DataFrame) -> pd.DataFrame:
    """What the exported script says of these rows, in a process that cannot import fedkin."""
    rows.to_csv(folder / "new.csv", index=False)
    words = [folder / "predict.py", folder / "new.csv", folder / "said.csv"]
    subprocess.run([sys.executable, "-I", "-c", WITHOUT_FEDKIN, *map(str, words)], check=True)
    return pd.read_csv(folder / "said.csv")


def test_twelve_hospitals_of_which_two_are_mislabelled(fedkin: Callable[..., Any], tmp_path: Path) -> None:
    table = write_hospitals(tmp_path / "patients.csv")
    columns = ["--data", str(table), "--client-column", "hospital", "--target-column", "outcome"]
    found = fedkin("compare", "fedavg", "fedmcsa", "pfedre", *columns, *BUDGET, "--splits", "2", "--out", "answer")
    assert found.code == 0
    assert re.search(r"patient_id +left out, unique", found.err)
    assert re.search(r"ward +7 categories", found.err)
    for number in range(1, 13):
        assert re.search(VERDICT.format(f"Hospital {number}"), found.out), number
    said = re.search(r"Hospitals (\d+) and (\d+) look mislabelled: (\d+) filters of (\d+) left them out\.", found.out)
    assert said is not None
    assert tuple(f"Hospital {number}" for number in said.groups()[:2]) == MISLABELLED

    made = fedkin("export", "answer", "--client", "Hospital 7", "-o", "model")
    assert made.code == 0
    new = {"age": 81, "ward": "a new ward", "emergency": True, "smoker": "", "creatinine": 160.0, "albumin": 30.0}
    old = {"age": 30, "ward": "eye clinic", "emergency": False, "smoker": "no", "creatinine": 60.0, "albumin": 45.0}
    rows = pd.DataFrame([new | {"admitted": "2025-12-24"}, old | {"admitted": "2024-02-01"}])
    assert predicted(tmp_path / "model", rows)["prediction"].tolist() == ["readmitted", "recovered"]


@pytest.mark.parametrize("task", ["disease", "stage"])
def test_the_four_real_hospitals(fedkin: Callable[..., Any], tmp_path: Path, task: str) -> None:
    patients = pd.read_csv(HEART)
    if task == "disease":
        patients["num"] = patients["num"].gt(0).map({True: "disease", False: "no disease"})
    patients.to_csv(tmp_path / "heart.csv", index=False)
    columns = ["--data", "heart.csv", "--client-column", "hospital", "--target-column", "num"]
    found = fedkin("compare", "fedavg", "fedmcsa", *columns, *BUDGET, "--splits", "2", "--out", "answer")
    assert found.code == 0
    for name in ("cleveland", "hungarian", "switzerland", "va"):
        assert re.search(VERDICT.format(name), found.out), name
    assert "mislabelled" not in found.out
    assert fedkin("export", "answer", "--client", "cleveland", "-o", "model").code == 0
    cleveland = patients[patients["hospital"] == "cleveland"]
    said = predicted(tmp_path / "model", cleveland.drop(columns="num"))
    right = said["prediction"].astype(str).to_numpy() == cleveland["num"].astype(str).to_numpy()
    assert right.mean() > (0.75 if task == "disease" else 0.5)
