"""What is to be predicted: classes and their names, or numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hospitals import hospitals

import fedkin as fk
from fedkin.data import Data, from_clients, load
from fedkin.data.division import division_of, table, target_values
from fedkin.data.federation import Federation
from fedkin.data.picture import draw
from fedkin.data.target import read_target
from fedkin.errors import BadInput
from fedkin.runs.facts import about_clients, fingerprint


@pytest.mark.parametrize(
    ("values", "y", "labels", "classes"),
    [
        ([0, 1, 1], [0, 1, 1], (), 2),
        ([0, 2, 2], [0, 2, 2], (), 3),
        ([0.0, 1.0], [0, 1], (), 2),
        ([1, 2, 1], [0, 1, 0], ("1", "2"), 2),
        ([1.0, 2.0], [0, 1], ("1", "2"), 2),
        ([-1, 1, -1], [0, 1, 0], ("-1", "1"), 2),
        ([5000, 7], [1, 0], ("7", "5000"), 2),
        (["b", "a"], [1, 0], ("a", "b"), 2),
        ([True, False], [1, 0], ("False", "True"), 2),
    ],
)
def test_classes(values: list[object], y: list[int], labels: tuple[str, ...], classes: int) -> None:
    found = read_target(np.array(values), "it")
    assert (found.task, found.y.tolist(), found.labels, found.classes) == ("classify", y, labels, classes)


def test_numbers_with_a_fraction_are_regressed() -> None:
    found = read_target(np.array([1.5, 2.0]), "it")
    assert (found.task, found.classes, found.y.tolist()) == ("regress", 1, [1.5, 2.0])


def test_many_whole_numbers_ask_which_is_meant() -> None:
    many, few = np.arange(21), np.arange(20)
    with pytest.raises(BadInput, match=r"21 different whole numbers in 21 rows.*--task classify or --task regress"):
        read_target(many, "it")
    assert read_target(many, "it", "regress").task == "regress"
    assert read_target(many, "it", "classify").classes == 21
    assert read_target(few, "it").classes == 20
    assert read_target(np.repeat(many, 20), "it").classes == 21  # class numbers, each in many rows
    with pytest.raises(BadInput, match=r"21 different whole numbers in 420 rows.*--task classify or --task regress"):
        read_target(np.repeat(many, 20), "it", table=True)  # days of a stay
    assert read_target(np.repeat(few, 20), "it", table=True).classes == 20
    with pytest.raises(BadInput, match="61 different whole numbers in 6,100 rows"):
        read_target(np.repeat(np.arange(20, 81), 100), "it")  # ages


def numbers(tmp_path: Path, **more: object) -> tuple[pd.DataFrame, Federation]:
    frame = hospitals(sizes=(30, 60)).drop(columns="outcome").dropna(subset="albumin").reset_index(drop=True)
    frame["albumin"] *= 10.3
    frame.to_csv(tmp_path / "a.csv", index=False)
    return frame, load(Data(str(tmp_path / "a.csv"), client="hospital", target="albumin", **more))  # type: ignore[arg-type]


class TestRegression:
    def test_the_target_is_standardised_as_the_features_are(self, tmp_path: Path) -> None:
        frame, federation = numbers(tmp_path)
        assert (federation.task, federation.classes, federation.labels) == ("regress", 1, ())
        assert federation.target_scale is not None
        preparation = federation.preparation or {}
        for site, train, test, scale in zip(
            federation.clients,
            federation.train.lists(),
            federation.test.lists(),
            federation.target_scale.tolist(),
            strict=True,
        ):
            own = frame["albumin"].to_numpy()[train.numpy()]
            fitted = preparation["sites"][site]
            assert scale == pytest.approx(own.std(), rel=1e-5)
            assert fitted["target_scale"] == pytest.approx(own.std(), rel=1e-5)
            assert federation.y[train].mean().item() == pytest.approx(0, abs=1e-5)
            back = federation.y[test].numpy() * fitted["target_scale"] + fitted["target_shift"]
            np.testing.assert_allclose(back, frame["albumin"].to_numpy()[test.numpy()], rtol=1e-5)

    def test_a_test_row_does_not_change_the_targets_scale(self, tmp_path: Path) -> None:
        frame, federation = numbers(tmp_path)
        frame.loc[federation.test.rows.numpy(), "albumin"] = 1e6
        frame.to_csv(tmp_path / "a.csv", index=False)
        again = load(Data(str(tmp_path / "a.csv"), client="hospital", target="albumin"))
        assert again.preparation == federation.preparation

    def test_without_standardising_the_target_stays(self, tmp_path: Path) -> None:
        frame, federation = numbers(tmp_path, standardise="none")
        np.testing.assert_allclose(federation.y.numpy(), frame["albumin"], rtol=1e-6)
        assert federation.target_scale is not None
        assert federation.target_scale.tolist() == [1.0] * 12

    def test_partitions_by_class_are_refused(self, tmp_path: Path) -> None:
        for partition in ("dirichlet:0.5", "classes:2", "shards:2", "pfedme"):
            with pytest.raises(
                BadInput, match=r"divides by classes, but .* has numbers to predict; use natural or iid"
            ):
                numbers(tmp_path, partition=partition)
        assert numbers(tmp_path, partition="iid", clients=3)[1].n == 3

    def test_scenarios(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="'flip' changes classes"):
            numbers(tmp_path, irrelevant="flip:0.2")
        _, clean = numbers(tmp_path)
        _, federation = numbers(tmp_path, irrelevant="ood:0.2,noise")
        assert federation.irrelevant is not None
        foreign = int(federation.irrelevant.nonzero()[0])
        pool = set(clean.y[clean.train.rows].tolist())
        assert set(federation.y[federation.train[foreign]].tolist()) <= pool
        assert federation.y.dtype == clean.y.dtype

    def test_records_and_pictures(self, tmp_path: Path) -> None:
        frame, federation = numbers(tmp_path)
        assert "labels" not in about_clients(federation)
        assert federation.label_counts().tolist() == federation.train.sizes[:, None].tolist()
        assert fingerprint(federation) != fingerprint(numbers(tmp_path, standardise="all")[1])
        lines = table(federation)
        assert "a number to predict" in lines[0]
        assert lines[2].split() == ["client", "train", "test", "mean", "sd", "min", "median", "max"]
        own = frame["albumin"].to_numpy()[federation.train[0].numpy()]
        np.testing.assert_allclose(target_values(federation)[0], own, rtol=1e-5)
        assert float(lines[3].split()[-5]) == pytest.approx(own.mean(), rel=1e-3)
        assert division_of(federation).counts.sum(1).tolist() == federation.train.sizes.tolist()
        assert "who has which values of albumin" in draw(federation, tmp_path / "p.svg").read_text()

    def test_arrays(self) -> None:
        x, y = np.ones((6, 2)), np.array([0.5, 1, 2, 3, 4, 5])
        federation = from_clients({"a": (x, y)})
        assert (federation.task, federation.classes) == ("regress", 1)
        with pytest.raises(BadInput, match="--task classify or --task regress"):
            from_clients({"a": (np.ones((40, 2)), np.arange(40))})
        assert from_clients({"a": (np.ones((40, 2)), np.arange(40))}, task="regress").task == "regress"


def test_rows_without_a_target_are_left_out(tmp_path: Path) -> None:
    frame = hospitals(sizes=(30, 40))
    frame.loc[:16, "outcome"] = None
    frame.to_csv(tmp_path / "a.csv", index=False)
    federation = load(Data(str(tmp_path / "a.csv"), client="hospital", target="outcome"))
    assert federation.notes[0] == "17 rows without 'outcome' are left out."
    assert len(federation.y) == len(frame) - 17
    heard: list[str] = []
    fk.run(fk.Experiment(fk.methods.fedavg(), federation, rounds=1), warn=heard.append)
    assert heard[:2] == list(federation.notes)


def test_named_datasets_have_named_classes() -> None:
    from fedkin.data.catalogue import CATALOGUE

    for name, entry in CATALOGUE.items():
        assert len(entry.labels) in (0, entry.classes), name
        assert len(set(entry.labels)) == len(entry.labels)
    assert CATALOGUE["emnist"].labels[10:12] == ("A", "B")
    assert CATALOGUE["mnist"].labels == ()
    assert CATALOGUE["cifar100"].labels[99] == "worm"
