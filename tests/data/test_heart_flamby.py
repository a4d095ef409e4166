"""FLamby's preparation and division of the patients of four hospitals."""

from __future__ import annotations

import dataclasses
import json
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from fedkin.data import Data, Federation, heart_flamby, load
from fedkin.data.preparation import apply
from fedkin.errors import BadInput

HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")


def table() -> pd.DataFrame:
    """The 740 patients, in their order."""
    whole = pd.read_csv(files("fedkin.data") / "tables" / "heart.csv")  # type: ignore[arg-type]
    return whole.drop(columns=["slope", "ca", "thal"]).dropna().reset_index(drop=True)


def as_published(state: int) -> dict[str, tuple[np.ndarray, ...]]:
    """FLamby's own lines, written down again: train x and y and test x and y of each hospital."""
    whole = table()
    coded = pd.get_dummies(whole.drop(columns=["hospital", "num"]), columns=["cp", "restecg"], drop_first=True)
    found = {}
    for name in HOSPITALS:
        x = coded[whole.hospital == name].to_numpy(np.float64)
        y = (whole.num[whole.hospital == name] > 0).to_numpy(np.int64)
        stratify = y if name != "switzerland" else None
        train, test = (
            np.sort(rows)
            for rows in train_test_split(
                np.arange(len(y)), train_size=0.66, test_size=0.34, random_state=state, stratify=stratify
            )
        )
        x = (x - x[train].mean(0)) / (x[train].std(0, ddof=1) + 1e-9)
        found[name] = x[train], y[train], x[test], y[test]
    return found


def test_the_published_split_has_the_published_samples() -> None:
    federation = load(Data("heart_flamby"))
    assert federation.clients == HOSPITALS
    assert federation.shape == (13,)
    assert federation.train.sizes.tolist() == [199, 172, 30, 85]
    assert federation.test.sizes.tolist() == [104, 89, 16, 45]
    for client, (x, y, test_x, test_y) in enumerate(as_published(43).values()):
        rows, held = federation.train[client], federation.test[client]
        np.testing.assert_allclose(federation.x[rows].numpy(), x, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(federation.x[held].numpy(), test_x, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(federation.y[rows].numpy(), y)
        np.testing.assert_array_equal(federation.y[held].numpy(), test_y)


def test_splits_are_other_divisions_of_the_same_patients() -> None:
    one, other = load(Data("heart_flamby")), load(Data("heart_flamby", split=3))
    assert other.train.sizes.tolist() == one.train.sizes.tolist()
    for client, (_, y, _, test_y) in enumerate(as_published(46).values()):
        np.testing.assert_array_equal(other.y[other.train[client]].numpy(), y)
        np.testing.assert_array_equal(other.y[other.test[client]].numpy(), test_y)
        assert set(one.test[client].tolist()) != set(other.test[client].tolist())
        together = np.concatenate([other.train[client], other.test[client]])
        assert len(set(together.tolist())) == len(together)


@pytest.mark.parametrize("split", range(30))
def test_no_feature_is_enormous_where_a_hospital_has_one_value_to_train_on(split: int) -> None:
    federation = load(Data("heart_flamby", split=split))
    x = federation.x[federation.train[2]].numpy()
    np.testing.assert_allclose(x.mean(0), 0, atol=1e-5)
    deviation = x.std(0, ddof=1)
    np.testing.assert_allclose(deviation[deviation > 0], 1, atol=1e-4)
    assert (deviation == 0).any(), "or nothing is tested"
    assert float(federation.x.abs().max()) < 20


def test_test_patients_do_not_change_what_is_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    before = load(Data("heart_flamby"))
    original = heart_flamby.heart

    def changed():
        samples = original()
        assert samples.table is not None
        frame = samples.table.frame.copy()
        complete = frame.drop(columns=list(heart_flamby.UNUSED)).notna().all(axis=1).to_numpy().nonzero()[0]
        frame.loc[complete[before.test.rows.numpy()], ["age", "chol", "oldpeak"]] = 1000
        return dataclasses.replace(samples, table=dataclasses.replace(samples.table, frame=frame))

    monkeypatch.setattr(heart_flamby, "heart", changed)
    after = load(Data("heart_flamby"))
    held, rows = before.test.rows, before.train.rows
    assert not np.allclose(before.x[held].numpy(), after.x[held].numpy()), "or nothing is tested"
    np.testing.assert_array_equal(before.x[rows].numpy(), after.x[rows].numpy())
    assert before.preparation == after.preparation


def test_a_patient_of_tomorrow_is_prepared_the_same_way() -> None:
    federation: Federation = load(Data("heart_flamby", split=1))
    preparation = json.loads(json.dumps(federation.preparation))
    rows = federation.test[3].numpy()
    np.testing.assert_array_equal(apply(preparation, table().iloc[rows], "va"), federation.x.numpy()[rows])


def test_what_the_protocol_fixes_is_refused() -> None:
    data = Data("heart_flamby")
    assert data.test == 0.34
    assert dataclasses.replace(data, split=2).test == 0.34
    assert load(Data("heart_flamby", without=("va",))).clients == HOSPITALS[:3]
    for given in ({"test": 0.2}, {"validation": 0.1}, {"drop": ("age",)}, {"standardise": "all"}, {"partition": "iid"}):
        with pytest.raises(BadInput, match=f"prepared and divided as published.*leave out {next(iter(given))}"):
            Data("heart_flamby", **given)  # type: ignore[arg-type]
