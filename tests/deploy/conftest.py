"""A small federation of hospitals, and runs on it."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

import fedkin as fk

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from hospitals import hospitals

NEW = "Hospital 12"


@pytest.fixture(scope="session")
def patients() -> pd.DataFrame:
    """The patients of twelve hospitals, all labelled rightly."""
    return hospitals(sizes=(40, 70), wrong=())


@pytest.fixture(scope="session")
def data(patients: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> fk.Data:
    """The table of all hospitals but the last."""
    path = tmp_path_factory.mktemp("tables") / "patients.csv"
    patients[patients["hospital"] != NEW].to_csv(path, index=False)
    return fk.Data(str(path), client="hospital", target="outcome")


@pytest.fixture(scope="session")
def compared(data: fk.Data, tmp_path_factory: pytest.TempPathFactory) -> fk.Comparison:
    folder = tmp_path_factory.mktemp("runs") / "compared"
    return fk.compare(["fedavg", "fedmcsa"], data, "dnn:6", rounds=4, seeds=2, folder=folder, evaluate_every=4)


@pytest.fixture(scope="session")
def fedavg(compared: fk.Comparison) -> fk.Run:
    return fk.load_run(compared.folder / "fedavg" / "seed-0")


@pytest.fixture(scope="session")
def fedmcsa(compared: fk.Comparison) -> fk.Run:
    return fk.load_run(compared.folder / "fedmcsa" / "seed-0")


@pytest.fixture
def rows_of(patients: pd.DataFrame, fedavg: fk.Run):
    """`rows_of("Hospital 7")`: the test rows of a hospital, as they stand in its table."""
    table = patients[patients["hospital"] != NEW].reset_index(drop=True)

    def chosen(name: str) -> pd.DataFrame:
        return table.iloc[fedavg.federation.test[fedavg.number(name)].tolist()]

    return chosen
