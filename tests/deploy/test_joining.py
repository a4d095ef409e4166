"""A site that was not there learns what it would gain, and from whom; its test rows do nothing but judge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fedkin as fk
from fedkin.data.holdout import split
from fedkin.deploy.joining import ALONE, COMMON, KIN, MIXED, TUNED

COUNT = 30  # rows of a site


def site(seed: int, sign: float, rows: int = COUNT) -> tuple[np.ndarray, np.ndarray]:
    """A site of one of two kinds: what is class 1 with sign 1 is class 0 with sign -1."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, 6)).astype(np.float32)
    return x, (sign * x[:, :3].sum(1) > 0).astype(np.int64)


@pytest.fixture(scope="module")
def federation() -> fk.Federation:
    """Eight sites: the first four of one kind, the others of the other."""
    return fk.from_clients({f"site {i}": site(i, 1.0 if i < 4 else -1.0) for i in range(8)})


@pytest.fixture(scope="module")
def local(federation: fk.Federation, tmp_path_factory: pytest.TempPathFactory) -> fk.Run:
    folder = tmp_path_factory.mktemp("local")
    fk.run(fk.Experiment(fk.methods.local(), federation, "mlr", rounds=20, evaluate_every=20), folder)
    return fk.load_run(folder)


@pytest.fixture(scope="module")
def ditto(federation: fk.Federation, tmp_path_factory: pytest.TempPathFactory) -> fk.Run:
    folder = tmp_path_factory.mktemp("ditto")
    fk.run(fk.Experiment(fk.methods.ditto(count=8), federation, "mlr", rounds=20, evaluate_every=20), folder)
    return fk.load_run(folder)


@pytest.mark.parametrize(("sign", "kin"), [(1.0, {0, 1, 2, 3}), (-1.0, {4, 5, 6, 7})])
def test_kin_are_of_the_same_kind_and_joining_pays(local: fk.Run, sign: float, kin: set[int]) -> None:
    x, y = site(50, sign, 120)
    draw = np.random.default_rng(3)
    few = np.r_[np.arange(8), draw.choice(np.arange(8, 120), 52, replace=False)]
    found = fk.join(local, (x[few], y[few]), "new", test=0.9, splits=10)  # six rows to train on, so alone is hard
    assert set(found.kin) <= {f"site {i}" for i in kin}
    assert found.kin
    assert set(found.scores) == {ALONE, KIN}
    assert found.gains[KIN].low > 0
    assert found.verdict == "join"
    assert found.sentence.startswith(f"new: join: {KIN}: +")
    assert " over alone (95 % interval " in found.sentence
    assert "Kin: site" in found.sentence


def test_the_rows_of_a_method_with_a_common_model(ditto: fk.Run) -> None:
    found = fk.join(ditto, site(60, 1.0), "new", splits=2)
    assert list(found.scores) == [ALONE, COMMON, TUNED, KIN]
    assert set(found.gains) == {COMMON, TUNED, KIN}
    assert found.rows <= COUNT
    again = fk.join(ditto, site(60, 1.0), "new", splits=2)
    assert again == found


def test_alone_is_local_on_these_rows(ditto: fk.Run) -> None:
    x, y = site(61, 1.0, 60)
    train, _, test = split(np.arange(60), 0.25, 0.0, 0, "new")
    pairs = {"split 0": {"train": (x[train], y[train]), "test": (x[test], y[test])}}
    method = fk.methods.local()
    wanted = fk.run(fk.Experiment(method, fk.from_clients(pairs), "mlr", rounds=20, evaluate_every=20))
    found = fk.join(ditto, (x, y), "new", splits=1)
    assert found.scores[ALONE] == pytest.approx(wanted.accuracies["post"][0])
    common = fk.predict(ditto, x[test])["prediction"].astype(int).to_numpy()
    assert found.scores[COMMON] == pytest.approx((common == y[test]).mean())


def test_test_rows_choose_no_kin(local: fk.Run) -> None:
    """Whatever stands in the test rows, the kin are the same; what stands in the training rows decides."""
    x, y = site(70, 1.0, 40)
    train, _, test = split(np.arange(40), 0.25, 0.0, 0, "new")
    before = fk.join(local, (x, y), "new", splits=1)
    other, label = x.copy(), y.copy()
    label[test] = 1 - label[test]
    other[test] *= 50
    assert fk.join(local, (other, label), "new", splits=1).kin == before.kin
    label = y.copy()
    label[train] = 1 - label[train]
    assert not set(fk.join(local, (x, label), "new", splits=1).kin) & set(before.kin)


def test_a_table_is_prepared_by_its_own_training_rows(fedavg: fk.Run, patients: pd.DataFrame) -> None:
    from fedkin.deploy.new_site import as_federation, new_site

    rows = patients[patients["hospital"] == "Hospital 12"].reset_index(drop=True)
    train, _, test = split(np.arange(len(rows)), 0.25, 0.0, 0, "Hospital 12")
    made = as_federation(fedavg, new_site(fedavg, rows, "Hospital 12"), 0.25, 2)
    age = made.x[made.train[0], 0]
    assert float(age.mean()) == pytest.approx(0, abs=1e-5)
    assert float(age.std(correction=0)) == pytest.approx(1, abs=1e-5)
    wild = rows.copy()
    wild.loc[test, "age"] = 1e6
    again = as_federation(fedavg, new_site(fedavg, wild, "Hospital 12"), 0.25, 2)
    assert again.x[again.train[0]].equal(made.x[made.train[0]])
    assert made.train[0].tolist() == train.tolist()
    assert (made.train[1] >= len(rows)).all()
    found = fk.join(fedavg, rows, "Hospital 12", splits=2)
    assert list(found.scores) == [ALONE, COMMON, TUNED, KIN]


def test_what_cannot_join_says_why(fedavg: fk.Run, local: fk.Run, patients: pd.DataFrame) -> None:
    rows = patients[patients["hospital"] == "Hospital 12"]
    cases = [
        (fedavg, rows.drop(columns="outcome"), "lacks the column outcome, which is to be predicted"),
        (fedavg, rows.drop(columns="age"), "lacks the column age"),
        (
            fedavg,
            rows.replace({"outcome": {"recovered": "well"}}),
            "has well, but the run knows only readmitted, recovered",
        ),
        (fedavg, rows.head(5), "has 5 rows with a target; a site needs at least 8"),
        (fedavg, site(1, 1.0), "trained on a table"),
        (local, rows, "trained on arrays"),
        (local, (np.zeros((20, 6)), np.full(20, 7)), "class numbers from 0 to 1"),
    ]
    for run, given, words in cases:
        with pytest.raises(fk.BadInput, match=words):
            fk.join(run, given, "new")
    with pytest.raises(fk.BadInput, match="--test is a share between 0 and 1, not 1"):
        fk.join(local, site(1, 1.0), "new", test=1)


def test_passes_are_chosen_within_the_training_rows(ditto: fk.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedkin.deploy import tuning
    from fedkin.deploy.new_site import as_federation, new_site

    whole = as_federation(ditto, new_site(ditto, site(90, -1.0, 40), "new"), 0.25, 3)
    within = tuning.inner(whole)
    for k in range(3):
        assert sorted([*within.train[k].tolist(), *within.test[k].tolist()]) == sorted(whole.train[k].tolist())
        assert len(within.test[k]) == 8
    chosen = fk.join(ditto, site(90, -1.0, 40), "new", splits=4).scores
    by_number = []
    for count in tuning.PASSES[:5]:
        with monkeypatch.context() as patch:
            patch.setattr(tuning, "PASSES", (count,))
            by_number.append(fk.join(ditto, site(90, -1.0, 40), "new", splits=4).scores)
    assert len({scores[TUNED] for scores in by_number}) > 1
    assert chosen[TUNED] > by_number[0][TUNED], "one pass is too little for a site unlike the mean of all"
    assert all(scores[ALONE] == chosen[ALONE] for scores in by_number)


def test_two_networks_in_one_are_averaged_but_not_trained(federation: fk.Federation, tmp_path: Path) -> None:
    from dataclasses import replace

    made = fk.methods.apfl(count=8)
    method = replace(made, train=replace(made.train, mix="output"))
    fk.run(fk.Experiment(method, federation, "mlr", rounds=3, evaluate_every=3), tmp_path)
    found = fk.join(fk.load_run(tmp_path), site(80, 1.0), "new", splits=2)
    assert list(found.scores) == [ALONE, COMMON, TUNED, MIXED]
