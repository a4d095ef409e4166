"""How rows of a table become samples: scikit-learn fits, one function applies, and only training rows are looked at."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hospitals import hospitals, write_hospitals
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fedkin as fk
from fedkin.data import Data, load
from fedkin.data.federation import Federation
from fedkin.data.fitting import fit_features
from fedkin.data.preparation import apply, targets
from fedkin.errors import BadInput

NUMBERS, CATEGORIES = ["age", "creatinine", "albumin"], ["ward", "smoker"]


def own(path: Path, frame: pd.DataFrame, **more: object) -> Federation:
    frame.to_csv(path, index=False)
    return load(Data(str(path), client="hospital", target="outcome", **more))  # type: ignore[arg-type]


def column(preparation: dict[str, object], name: str) -> str:
    return next(one["said"] for one in preparation["columns"] if one["name"] == name)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hospitals(tmp_path_factory.mktemp("own") / "hospitals.csv")


@pytest.fixture(scope="module")
def federation(path: Path) -> Federation:
    return load(Data(str(path), client="hospital", target="outcome"))


def test_every_column_is_told(federation: Federation) -> None:
    assert federation.preparation is not None
    said = {one["name"]: (one["kind"], one["said"]) for one in federation.preparation["columns"]}
    assert list(said) == list(hospitals().columns)
    assert said["patient_id"] == ("left out", "left out, unique")
    assert said["country"] == ("left out", "left out, constant")
    assert said["age"] == ("number", "number, standardised")
    assert said["ward"] == ("category", "7 categories")
    assert said["emergency"] == ("number", "true or false, as 1 and 0, standardised")
    assert said["admitted"] == ("date", "date, standardised")
    assert said["albumin"][1].endswith("missing, filled with the median")
    assert said["outcome"] == ("target", "to predict, 2 classes: readmitted, recovered")
    assert federation.labels == ("readmitted", "recovered")
    assert federation.notes == ("Columns that are left out: patient_id (unique); country (constant).",)


def test_the_preparation_is_json_of_finite_numbers(federation: Federation) -> None:
    preparation = federation.preparation
    assert preparation is not None
    assert json.loads(json.dumps(preparation, allow_nan=False)) == preparation
    assert list(preparation["sites"]) == list(federation.clients)
    for fitted in [preparation["all"], *preparation["sites"].values()]:
        assert [len(fitted[name]) for name in ("fill", "shift", "scale")] == [len(preparation["features"])] * 3
        assert min(fitted["scale"]) > 0


def test_apply_is_what_made_the_samples(federation: Federation, path: Path) -> None:
    table = pd.read_csv(path)
    for number, site in enumerate(federation.clients):
        for index in (federation.train, federation.test):
            rows = index[number].numpy()
            again = apply(federation.preparation or {}, table.iloc[rows], site)
            np.testing.assert_array_equal(again, federation.x.numpy()[rows])
    labels = targets(federation.preparation or {}, table["outcome"], None)
    np.testing.assert_array_equal(labels, federation.y.numpy())


def test_apply_equals_scikit_learn(federation: Federation) -> None:
    """At every site, on training and on test rows: the transformers are fitted here, the stored numbers there."""
    table = hospitals()
    everyone = table.iloc[federation.train.rows.numpy()]
    counts = {name: everyone[name].notna().sum() for name in CATEGORIES}
    encoders = [
        (name, OneHotEncoder(min_frequency=int(np.ceil(0.01 * counts[name])), sparse_output=False).fit(present))
        for name in CATEGORIES
        for present in [everyone.loc[everyone[name].notna(), [name]].astype(object)]
    ]
    features = (federation.preparation or {})["features"]
    for number, site in enumerate(federation.clients):
        train, test = federation.train[number].numpy(), federation.test[number].numpy()
        numbers = ColumnTransformer(
            [
                ("scaled", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), NUMBERS),
                ("missing", MissingIndicator(features="all"), NUMBERS),
            ]
        ).fit(table.iloc[train])
        for rows in (train, test):
            made = apply(federation.preparation or {}, table.iloc[rows], site)
            expected = numbers.transform(table.iloc[rows])
            for place, feature in enumerate(features):
                if feature["column"] in NUMBERS:
                    at = NUMBERS.index(feature["column"]) + (3 if feature["is"] == "missing" else 0)
                    np.testing.assert_allclose(made[:, place], expected[:, at].astype(float), rtol=1e-5, atol=1e-6)
            for name, encoder in encoders:
                present = table.iloc[rows][name].notna().to_numpy()
                mine = made[:, [i for i, f in enumerate(features) if f["column"] == name and f["is"] == "category"]]
                known = table.iloc[rows].loc[present, [name]].astype(object)
                np.testing.assert_array_equal(mine[present], encoder.transform(known))
                assert not mine[~present].any()


def test_a_test_row_changes_nothing_that_is_fitted(tmp_path: Path) -> None:
    table = hospitals(sizes=(20, 40))
    before = own(tmp_path / "a.csv", table)
    held = before.test.rows.numpy()
    wild = table.copy()
    wild.loc[held, "age"] = 1e6
    wild.loc[held, "albumin"] = np.nan
    wild.loc[held, "ward"] = "the moon"
    wild.loc[held, "country"] = "BE"
    wild.loc[held, "admitted"] = "1900-01-01"
    after = own(tmp_path / "a.csv", wild)
    assert before.train.rows.equal(after.train.rows)
    assert before.preparation == after.preparation
    assert before.x[before.train.rows].equal(after.x[after.train.rows])
    assert not before.x[before.test.rows].equal(after.x[after.test.rows])


def test_validation_and_server_rows_are_not_fitted_either(tmp_path: Path) -> None:
    table = hospitals(sizes=(20, 40))
    before = own(tmp_path / "a.csv", table, validation=0.2, server=30)
    assert before.validation is not None
    assert before.server is not None
    table.loc[[*before.validation.rows.tolist(), *before.server.tolist()], "age"] = 1e6
    assert own(tmp_path / "a.csv", table, validation=0.2, server=30).preparation == before.preparation


@pytest.mark.parametrize("standardise", ["site", "all", "none"])
def test_who_is_standardised_by_whom(tmp_path: Path, standardise: str) -> None:
    table = hospitals(sizes=(30, 60))
    table.loc[table["hospital"] == "Hospital 1", "age"] += 1000
    federation = own(tmp_path / "a.csv", table, standardise=standardise)
    place = [f["column"] for f in (federation.preparation or {})["features"]].index("age")
    mean = np.array([federation.x[rows, place].double().mean() for rows in federation.train.lists()])
    everyone = federation.x[federation.train.rows, place].double()
    if standardise == "site":
        np.testing.assert_allclose(mean, 0, atol=1e-5)
    elif standardise == "all":
        assert abs(float(everyone.mean())) < 1e-5
        assert float(everyone.std(correction=0)) == pytest.approx(1, abs=1e-5)
        assert mean[0] > 1
    else:
        rows = federation.train.rows.numpy()
        np.testing.assert_allclose(everyone.numpy(), table["age"].to_numpy()[rows], rtol=1e-6)


def fitted(standardise: str = "site", **columns: list[object]) -> dict[str, object]:
    """The preparation of a table of two sites with four rows each."""
    return fit_features(pd.DataFrame(columns), {"a": np.arange(4), "b": np.arange(4, 8)}, standardise)


class TestCategories:
    def test_rare_ones_go_together_and_unseen_ones_with_them(self) -> None:
        preparation = fitted(ward=["A", "A", "A", "B", "B", "C", "D", None])
        assert [f.get("value", f["is"]) for f in preparation["features"]] == ["A", "B", "other", "missing"]  # type: ignore[attr-defined]
        new = pd.DataFrame({"ward": ["A", "C", "never seen", None, " B "]})
        assert apply(preparation, new, "a").tolist() == [
            [1, 0, 0, 0],
            [0, 0, 1, 0],
            [0, 0, 1, 0],
            [0, 0, 0, 1],
            [0, 1, 0, 0],
        ]

    def test_unseen_ones_are_nothing_where_none_is_rare(self) -> None:
        preparation = fitted(ward=["A", "B"] * 4)
        assert apply(preparation, pd.DataFrame({"ward": ["A", "Z"]}), "b").tolist() == [[1, 0], [0, 0]]

    def test_numbers_that_are_codes_mean_the_same_as_text_and_as_floats(self) -> None:
        codes = pd.DataFrame({"cp": [1, 2, 1, 2, 1, 2, 1, 2]}).astype("category")
        preparation = fit_features(codes, {"a": np.arange(8)}, "site")
        for new in ([1, 2], [1.0, 2.0], ["1", "2"], [1.0, 2.0, np.nan][:2]):
            assert apply(preparation, pd.DataFrame({"cp": new}), "a").tolist() == [[1, 0], [0, 1]]


class TestNumbers:
    def test_a_column_that_a_site_lacks_is_zero_there(self) -> None:
        values = [1.0, 2.0, 3.0, 4.0, None, None, None, None]
        preparation = fitted(age=values)
        frame = pd.DataFrame({"age": values[4:]})
        assert apply(preparation, frame, "b").tolist() == [[0, 1]] * 4
        later = apply(preparation, pd.DataFrame({"age": [2.5]}), "b")  # measured now: by the numbers of all sites
        assert later.tolist() == [[0, 0]]

    def test_a_column_that_is_constant_at_a_site_has_scale_one(self) -> None:
        preparation = fitted(age=[1.0, 2.0, 3.0, 4.5, 7.0, 7.0, 7.0, 7.0])
        assert preparation["sites"]["b"]["scale"] == [1.0]  # type: ignore[index]
        assert apply(preparation, pd.DataFrame({"age": [7.0, 8.0]}), "b").tolist() == [[0], [1]]

    def test_a_row_of_no_known_site_goes_by_all(self) -> None:
        preparation = fitted(age=[0.0, 2.0, 0.0, 2.0, 10.0, 12.0, 10.0, 12.0])
        for site in (None, "elsewhere"):
            assert apply(preparation, pd.DataFrame({"age": [6.0]}), site).tolist() == [[0]]
        assert apply(preparation, pd.DataFrame({"age": [3.0]}), "a").tolist() == [[2]]

    def test_without_scaling_missing_values_are_filled(self) -> None:
        preparation = fitted("none", age=[1.0, 2.0, None, 9.0, 5.0, 6.0, 7.0, 8.0])
        assert apply(preparation, pd.DataFrame({"age": [None, 3.0]}), "a").tolist() == [[2, 1], [3, 0]]

    def test_a_table_that_lacks_a_column_is_refused(self) -> None:
        with pytest.raises(BadInput, match="lacks the column age; it has height"):
            apply(fitted(age=[*range(8)]), pd.DataFrame({"height": [1]}), "a")


def test_days_are_counted_from_1970() -> None:
    preparation = fitted("none", day=["1970-01-02", "1970-01-03"] * 4)
    assert preparation["features"] == [{"column": "day", "is": "date", "format": "ISO8601"}]
    frame = pd.DataFrame({"day": ["1970-01-11", "2000-01-01T12:00:00"]})
    assert apply(preparation, frame, "a").tolist() == [[10], [10957.5]]
    assert apply(preparation, frame.assign(day=pd.to_datetime(frame["day"], format="ISO8601")), "a").tolist() == [
        [10],
        [10957.5],
    ]


def test_a_run_keeps_its_preparation(federation: Federation, path: Path, tmp_path: Path) -> None:
    data = Data(str(path), client="hospital", target="outcome")
    run = fk.run(fk.Experiment(fk.methods.fedavg(), data, rounds=1), tmp_path / "run", warn=lambda _: None)
    assert run.preparation == federation.preparation
    assert fk.load_run(tmp_path / "run").preparation == federation.preparation
    assert run.experiment["resolved"]["labels"] == ["readmitted", "recovered"]
    assert run.experiment["resolved"]["task"] == "classify"
    other = fk.run(fk.Experiment(fk.methods.fedavg(), Data("digits", clients=3), rounds=1), tmp_path / "digits")
    assert other.preparation is None
    assert fk.load_run(tmp_path / "digits").preparation is None
