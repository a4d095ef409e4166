"""The patients of four hospitals that come with the package."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

import fedkin as fk
from fedkin.data import Data, datasets, load
from fedkin.data.preparation import apply
from fedkin.errors import BadInput

HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")


def test_four_hospitals() -> None:
    federation = load(Data("heart"))
    assert federation.clients == HOSPITALS
    assert (federation.train.sizes + federation.test.sizes).tolist() == [303, 294, 123, 200]
    assert federation.labels == ("no disease", "disease")
    ill = [float(federation.y[torch_rows].float().mean()) for torch_rows in federation.train.lists()]
    np.testing.assert_allclose(ill, [0.46, 0.36, 0.93, 0.74], atol=0.05)
    assert next(one for one in datasets() if one.name == "heart").offline


def test_codes_are_categories() -> None:
    preparation = load(Data("heart")).preparation or {}
    kinds = {one["name"]: one["kind"] for one in preparation["columns"]}
    assert {name for name, kind in kinds.items() if kind == "category"} == {"cp", "restecg", "slope", "thal"}
    assert [f["value"] for f in preparation["features"] if f["is"] == "category" and f["column"] == "thal"] == list(
        "367"
    )
    raw = pd.read_csv(files("fedkin.data") / "tables" / "heart.csv")  # type: ignore[arg-type]
    federation = load(Data("heart"))
    rows = federation.test[2].numpy()
    np.testing.assert_array_equal(apply(preparation, raw.iloc[rows], "switzerland"), federation.x.numpy()[rows])


def test_columns_can_be_chosen() -> None:
    flamby = load(Data("heart", drop=("slope", "ca", "thal"), standardise="all")).preparation or {}
    assert not {"slope", "ca", "thal"} & {feature["column"] for feature in flamby["features"]}
    only = load(Data("heart", features=("age", "sex"))).preparation or {}
    assert [feature["column"] for feature in only["features"]] == ["age", "sex"]
    with pytest.raises(BadInput, match="no column called 'cholesterol'"):
        load(Data("heart", drop=("cholesterol",)))
    with pytest.raises(BadInput, match="are for tables; mnist"):
        Data("mnist", standardise="all")
    with pytest.raises(BadInput, match="are for own data; heart has its own"):
        Data("heart", target="age")


def test_the_table_comes_with_its_attribution() -> None:
    said = (files("fedkin.data") / "tables" / "heart_attribution.txt").read_text()
    assert "CC BY 4.0" in said
    for creator in ("Janosi", "Steinbrunn", "Pfisterer", "Detrano"):
        assert creator in said


def test_scaling_decides_what_a_site_can_learn(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Breast cancer in six sites: without scaling Local hardly learns, with it it does."""
    x, y = load_breast_cancer(return_X_y=True, as_frame=True)
    path = tmp_path_factory.mktemp("own") / "cancer.csv"
    x.assign(label=y, client=[f"site {i % 6}" for i in range(len(y))]).to_csv(path, index=False)

    def local(standardise: str) -> float:
        data = Data(str(path), standardise=standardise)  # type: ignore[arg-type]
        run = fk.run(fk.Experiment(fk.methods.local(), data, rounds=10, evaluate_every=10), warn=lambda _: None)
        return float(run.summary["accuracy"]["post"]["macro"]["last"])

    raw, scaled = local("none"), local("site")
    assert raw < 0.75
    assert scaled > 0.9
