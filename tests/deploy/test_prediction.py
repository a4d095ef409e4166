"""Rows find the model of their site; what cannot be predicted says why."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import fedkin as fk


def stored(run: fk.Run, kind: str, name: str) -> np.ndarray:
    """The probabilities by which a client's test rows were judged."""
    found = run.predictions
    return torch.from_numpy(found[kind][found["client"] == run.number(name)]).softmax(1).numpy()


def test_every_row_gets_the_model_of_its_own_site(fedmcsa: fk.Run, rows_of) -> None:
    both = pd.concat([rows_of("Hospital 2"), rows_of("Hospital 5")])
    mixed = both.sample(frac=1, random_state=0)
    found = fk.predict(fedmcsa, mixed).loc[both.index]
    chance = found[["probability readmitted", "probability recovered"]].to_numpy()
    wanted = np.concatenate([stored(fedmcsa, "post", name) for name in ("Hospital 2", "Hospital 5")])
    np.testing.assert_allclose(chance, wanted, atol=1e-5)
    assert found["prediction"].tolist() == np.array(["readmitted", "recovered"])[wanted.argmax(1)].tolist()
    by_one = fk.predict(fedmcsa, both, "Hospital 2")  # a client that is named goes before the column
    assert not np.allclose(by_one.iloc[-1, 1:].astype(float), found.iloc[-1, 1:].astype(float))


def test_rows_of_a_site_that_was_not_there_get_the_common_model(
    fedavg: fk.Run, fedmcsa: fk.Run, patients: pd.DataFrame
) -> None:
    told: list[str] = []
    rows = patients[patients["hospital"].isin(["Hospital 12", "Hospital 2"])]
    found = fk.predict(fedavg, rows, warn=told.append)
    assert told == ["Not in the run, so judged by the common model: Hospital 12."]
    new = rows[rows["hospital"] == "Hospital 12"]
    common = fk.predict(fedavg, new.drop(columns="hospital"))
    pd.testing.assert_frame_equal(found.loc[new.index], common)
    with pytest.raises(
        fk.BadInput, match=r"fedmcsa has no common model, and these rows are of no client.* Hospital 12"
    ):
        fk.predict(fedmcsa, rows)
    with pytest.raises(fk.BadInput, match="no common model; name a client"):
        fk.predict(fedmcsa, rows.drop(columns="hospital"))


def test_a_table_without_rows_or_columns(fedavg: fk.Run, rows_of) -> None:
    rows = rows_of("Hospital 2")
    assert fk.predict(fedavg, rows.head(0)).columns.tolist()[0] == "prediction"
    with pytest.raises(fk.BadInput, match="lacks the column age, ward"):
        fk.predict(fedavg, rows.drop(columns=["age", "ward"]))
    with pytest.raises(fk.BadInput, match="There is no client called 'Hospital 77'"):
        fk.predict(fedavg, rows, "Hospital 77")


def test_arrays(tmp_path) -> None:
    run = fk.run(
        fk.Experiment(fk.methods.ditto(count=3), fk.Data("digits", clients=3), rounds=2, evaluate_every=2), tmp_path
    )
    x = run.federation.x[run.federation.test[2]]
    found = fk.predict(run, x, "2")
    np.testing.assert_allclose(found.iloc[:, 1:].to_numpy(), stored(run, "post", "2"), atol=1e-5)
    common = fk.predict(run, x.numpy())
    np.testing.assert_allclose(common.iloc[:, 1:].to_numpy(), stored(run, "global", "2"), atol=1e-5)
    with pytest.raises(fk.BadInput, match=r"samples are of shape \(3,\)"):
        fk.predict(run, np.zeros((2, 3)))
    with pytest.raises(fk.BadInput, match="trained on arrays"):
        fk.predict(run, pd.DataFrame({"x": [1]}))


def test_a_method_judged_by_its_common_model_predicts_with_it(data: fk.Data, rows_of, tmp_path) -> None:
    method = fk.methods.pfedre()
    run = fk.run(fk.Experiment(method, data, rounds=2, evaluate_every=2), tmp_path)
    assert run.judged == "global"
    found = fk.predict(run, rows_of("Hospital 2"), "Hospital 2")
    np.testing.assert_allclose(found.iloc[:, 1:].to_numpy(), stored(run, "global", "Hospital 2"), atol=1e-5)
