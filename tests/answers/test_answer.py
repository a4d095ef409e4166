"""The answer for every site of a comparison: in its summary, in Python, and where predictions were not kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fedkin as fk
from fedkin.answers.answer import answers
from fedkin.runs.verdict import LOCAL


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("answers") / "out"
    data = fk.Data("digits", clients=6, seed=1)
    fk.compare(["fedavg", "fedmcsa"], data, rounds=6, splits=2, folder=place, warn=lambda _: None)
    return place


def test_the_answer_is_in_the_summary_and_is_read_back(folder: Path) -> None:
    stored = json.loads((folder / "summary.json").read_text())["sites"]
    found = fk.load_comparison(folder)
    assert stored["metric"] == "accuracy"
    assert [site["site"] for site in stored["sites"]] == [str(i) for i in range(6)]
    frame = found.sites()
    assert list(frame.index) == [str(i) for i in range(6)]
    assert str(found).splitlines()[0].endswith("no clear difference.") or "sites: join" in str(found).splitlines()[0]
    for site in stored["sites"]:
        assert site["methods"].keys() == {"fedavg", "fedmcsa"}
        assert site["low"] <= site["gain"] <= site["high"]


def test_gains_are_means_of_differences_over_splits(folder: Path) -> None:
    found = fk.load_comparison(folder)
    for site, row in enumerate(found.summary["sites"]["sites"]):
        each = [
            run.accuracies["post"][site] - found.runs["local"][key].accuracies["post"][site]
            for key, run in found.runs["fedavg"].items()
        ]
        assert row["methods"]["fedavg"]["gain"] == pytest.approx(np.mean(each))


def test_test_rows_are_counted_once_however_many_splits_have_them(folder: Path) -> None:
    found = fk.load_comparison(folder)
    runs = [run.predictions for run in found.runs["local"].values()]
    assert all(said is not None for said in runs)
    for site, row in enumerate(found.summary["sites"]["sites"]):
        rows = {int(r) for said in runs if said for r in said["rows"][said["client"] == site]}
        assert row["rows"] == len(rows)


def test_the_answer_is_the_same_each_time(folder: Path) -> None:
    found = fk.load_comparison(folder)
    first, second = (answers(found.runs, {"fedavg": LOCAL}) for _ in range(2))
    assert first == second


def test_without_predictions_intervals_are_wider_and_the_answer_says_so(folder: Path) -> None:
    found = fk.load_comparison(folder)
    exact = answers(found.runs, {"fedavg": LOCAL})
    for several in found.runs.values():
        for run in several.values():
            run.__dict__["predictions"] = None
    rough = answers(found.runs, {"fedavg": LOCAL})
    assert "kept no predictions" in rough["notes"][-1]
    for a, b in zip(exact["sites"], rough["sites"], strict=True):
        assert b["gain"] == pytest.approx(a["gain"])
        assert b["high"] - b["low"] > 0


def test_numbers_without_predictions_have_no_answer(tmp_path: Path) -> None:
    gen = np.random.default_rng(0)
    clients = {f"site {i}": (x := gen.normal(size=(40, 3)), x @ [1.0, 2.0, 0.5]) for i in range(3)}
    found = fk.compare(["fedavg"], fk.from_clients(clients, task="regress"), rounds=2, folder=tmp_path / "out")
    assert answers(found.runs, {"fedavg": LOCAL})["metric"] == "r2"
    for several in found.runs.values():
        for run in several.values():
            run.__dict__["predictions"] = None
    assert answers(found.runs, {"fedavg": LOCAL}) == {}


def test_one_split_is_said_to_be_one() -> None:
    found = fk.compare(["fedavg"], fk.Data("digits", clients=4), rounds=2, warn=lambda _: None)
    assert "try --splits 10" in str(found)


def test_a_personal_model_that_never_sees_the_others_is_not_judged() -> None:
    """PFedRe as printed: its post is training alone, so its common model is judged."""
    found = fk.compare(["pfedre"], fk.Data("digits", clients=4), rounds=3, warn=lambda _: None)
    run, local = found.runs["pfedre"][0], found.runs["local"][0]
    assert run.judged == "global"
    np.testing.assert_array_equal(run.accuracies["post"], local.accuracies["post"])
    gains = found.gains()["pfedre"]
    np.testing.assert_allclose(gains, run.accuracies["global"] - local.accuracies["post"])
    assert [site["gain"] for site in found.summary["sites"]["sites"]] == pytest.approx(list(gains))


def test_a_regression_has_an_answer_in_r2() -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=3)
    clients = {}
    for i in range(5):
        x = rng.normal(size=(60, 3)).astype(np.float32)
        clients[f"Plant {i}"] = (x, (x @ weights + 0.1 * rng.normal(size=60)).astype(np.float32))
    data = fk.from_clients(clients, task="regress")
    found = fk.compare(["fedavg"], data, rounds=3, warn=lambda _: None)
    assert found.summary["sites"]["metric"] == "r2"
    assert " in R2" in str(found)
    assert "inverted updates (PFedRe)" not in found.summary["sites"]["filters"]
