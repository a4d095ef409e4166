"""`fk.compare`: the same comparison as the command's, in Python."""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import fedkin as fk
from fedkin.comparison.plan import Loaded, settled
from fedkin.runs.setup import set_up

SETTINGS: dict[str, Any] = {"rounds": 3, "seeds": 2, "evaluate_every": 1}


def digits() -> fk.Data:
    return fk.Data("digits", clients=6, seed=1)


@pytest.fixture(scope="module")
def found() -> fk.Comparison:
    return fk.compare(["fedavg", fk.methods.fedmcsa(count=3)], digits(), **SETTINGS)


def test_local_is_always_there(found: fk.Comparison) -> None:
    assert list(found.table().index) == ["local", "fedavg", "fedmcsa"]
    assert list(found.verdicts) == ["fedavg", "fedmcsa"]


def test_the_table_says_what_the_runs_say(found: fk.Comparison) -> None:
    table = found.table()
    last = [run.summary["accuracy"]["post"]["macro"]["last"] for run in found.runs["fedavg"].values()]
    assert table.loc["fedavg", "post macro"] == pytest.approx(np.mean(last))
    assert table.loc["fedavg", "post macro std"] == pytest.approx(np.std(last, ddof=1))
    assert table.loc["fedavg", "verdict"] == found.verdicts["fedavg"]["verdict"]
    assert np.isnan(table.loc["local", "gain"])
    assert list(table.columns)[:2] == ["post macro", "post macro std"]


def test_gains_are_differences_to_local_client_by_client(found: fk.Comparison) -> None:
    gains = found.gains()
    assert list(gains.columns) == ["fedavg", "fedmcsa"]
    each = [found.runs["fedavg"][s].accuracies["post"] - found.runs["local"][s].accuracies["post"] for s in (0, 1)]
    np.testing.assert_allclose(gains["fedavg"], np.mean(each, axis=0))
    assert found.verdicts["fedavg"]["gain"] == pytest.approx(gains["fedavg"].mean())


def test_the_report_is_written_where_it_is_wanted(found: fk.Comparison, tmp_path: Path) -> None:
    page = found.report(tmp_path / "page.html")
    assert "fedmcsa" in page.read_text()
    with pytest.raises(fk.BadInput, match="no folder"):
        found.report()


def test_a_folder_is_that_of_the_command_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    first = fk.compare(["fedavg"], digits(), rounds=1, folder=folder, evaluate_every=1)
    assert json.loads((folder / "summary.json").read_text())["methods"].keys() == {"local", "fedavg"}
    with pytest.raises(fk.BadInput, match="exists already"):
        fk.compare(["fedavg"], digits(), rounds=1, folder=folder)
    more = fk.compare(["fedavg"], digits(), rounds=2, folder=folder, resume=True, evaluate_every=1)
    whole = fk.compare(["fedavg"], digits(), rounds=2, evaluate_every=1)
    for name, value in whole.runs["fedavg"][0].models["global"].items():
        assert torch.equal(value, more.runs["fedavg"][0].models["global"][name])
    assert first.report() == folder / "report.html"


def test_own_data_and_own_modules_are_compared() -> None:
    gen = torch.Generator().manual_seed(0)
    clients = {f"ward {i}": (torch.randn(12, 3, generator=gen), torch.arange(12) % 2) for i in range(4)}
    data, module = fk.from_clients(clients), torch.nn.Linear(3, 2)
    found = fk.compare(["fedavg"], data, module, rounds=1, jobs=2, warn=lambda _: None)
    assert list(found.gains().index) == [f"ward {i}" for i in range(4)]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no method": ({"methods": []}, "at least one method"),
    "a name alone": ({"methods": "fedavg"}, "list of methods"),
    "a function": ({"methods": [fk.methods.fedavg]}, "list of methods"),
    "an unknown name": ({"methods": ["fedavgg"]}, "did you mean fedavg"),
    "no seed": ({"seeds": 0}, "at least 1"),
    "an empty list of seeds": ({"seeds": []}, "different whole numbers"),
    "a seed twice": ({"seeds": [0, 0]}, "different whole numbers"),
    "half a seed": ({"seeds": 1.5}, "different whole numbers"),
    "no process": ({"jobs": 0}, "number of processes"),
    "a model that is none": ({"model": 3}, "a name or a module"),
    "data that are none": ({"data": 3}, "fk.Data"),
    "nothing to go on with": ({"resume": True}, "folder"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    given, sentence = BAD[name]
    with pytest.raises(fk.BadInput, match=sentence):
        fk.compare(**{"methods": ["fedavg"], "data": digits(), "rounds": 1} | given)
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_run_outlives_its_comparison_and_then_the_folder_goes() -> None:
    run = fk.compare(["fedavg"], digits(), rounds=1).runs["fedavg"][0]
    gc.collect()
    assert run.clients()["selected"].tolist() == [1] * 6
    folder = run.folder
    assert folder is not None
    del run
    gc.collect()
    assert not folder.exists()


def test_callbacks_hear_every_run_and_may_stop_the_comparison(tmp_path: Path) -> None:
    class Ear(fk.Callback):
        heard: ClassVar[list[tuple[Any, ...]]] = []

        def begun(self, experiment: dict[str, Any]) -> None:
            self.heard.append(("begun", experiment["method"]["name"]))

        def recorded(self, record: fk.Record) -> bool:
            self.heard.append((record.method, record.seed, record.round))
            return record.method != "fedavg"

        def ended(self, finished: bool) -> None:
            self.heard.append(("ended", finished))

    folder = tmp_path / "out"
    with pytest.raises(fk.BadInput, match="A callback stopped the comparison; go on with folder="):
        fk.compare(["fedavg"], digits(), rounds=2, folder=folder, callbacks=[Ear()])
    alone = [("begun", "local"), ("local", 0, 1), ("local", 0, 2), ("ended", True)]
    assert Ear.heard == [*alone, ("begun", "fedavg"), ("fedavg", 0, 1), ("ended", False)]
    with pytest.raises(fk.BadInput, match="not finished"):
        fk.load_comparison(folder)
    assert fk.compare(["fedavg"], digits(), rounds=2, folder=folder, resume=True).verdicts.keys() == {"fedavg"}


def test_callbacks_hear_runs_in_other_processes_and_may_stop_them(tmp_path: Path) -> None:
    heard: list[tuple[Any, ...]] = []

    class Ear(fk.Callback):
        def begun(self, experiment: dict[str, Any]) -> None:
            heard.append(("begun", experiment["method"]["name"]))

        def recorded(self, record: fk.Record) -> bool:
            heard.append((record.method, record.round))
            return record.round < 3

        def ended(self, finished: bool) -> None:
            heard.append(("ended", finished))

    with pytest.raises(fk.BadInput, match="stopped"):
        fk.compare(["fedavg"], digits(), rounds=9000, folder=tmp_path / "out", callbacks=[Ear()], jobs=2)
    assert {("begun", "local"), ("begun", "fedavg"), ("ended", False)} <= {*heard}
    assert ("local", 3) in heard or ("fedavg", 3) in heard
    assert not any(line[1] == 9000 for line in heard)


def test_a_stored_comparison_is_read_back(tmp_path: Path) -> None:
    made = fk.compare(["fedavg"], digits(), rounds=1, folder=tmp_path / "out", seeds=2)
    read = fk.load_comparison(tmp_path / "out")
    assert read.table().equals(made.table())
    assert read.gains().equals(made.gains())
    assert read.verdicts == made.verdicts
    with pytest.raises(fk.BadInput, match="not a comparison"):
        fk.load_comparison(tmp_path)
    with pytest.raises(fk.BadInput, match=r"use fk\.load"):
        fk.load_run(tmp_path / "out")


def test_a_comparison_on_own_data_goes_on_with_the_same_data_only(tmp_path: Path) -> None:
    gen = torch.Generator().manual_seed(0)
    clients = {f"ward {i}": (torch.randn(12, 3, generator=gen), torch.arange(12) % 2) for i in range(4)}
    folder, data = tmp_path / "out", fk.from_clients(clients)
    fk.compare(["fedavg"], data, rounds=1, folder=folder)
    more = fk.compare(["fedavg"], data, rounds=2, folder=folder, resume=True)
    assert more.runs["fedavg"][0].reached == 2
    other = fk.from_clients({name: (x + 1, y) for name, (x, y) in clients.items()})
    with pytest.raises(fk.BadInput, match="data are not those"):
        fk.compare(["fedavg"], other, rounds=3, folder=folder, resume=True)


def test_all_methods_of_a_comparison_have_one_cadence() -> None:
    base = fk.Experiment(fk.methods.fedavg(count=1, steps=1), digits(), "dnn:200", rounds=500)
    experiments = [replace(base, method=method) for method in (base.method, fk.methods.local())]
    each = [set_up(experiment, fk.load_data(digits())).evaluate_every for experiment in experiments]
    assert each[0] > each[1]
    assert {one.evaluate_every for one in settled(experiments, Loaded(), 1)} == {each[0]}


def test_every_run_gets_its_own_data() -> None:
    loaded, base = Loaded(), fk.Experiment(fk.methods.fedavg(), digits())
    first = loaded(base)
    assert loaded(replace(base, seed=3)) is first
    assert loaded(replace(base, data=fk.Data("digits", clients=4))).n == 4
    assert loaded(replace(base, data=first)) is first


def test_a_sentence_is_said_once_however_many_runs_say_it() -> None:
    x = np.random.default_rng(0).normal(size=(40, 2)) * [1, 1000]
    federation = fk.from_clients({name: (x, np.arange(40) % 2) for name in "ab"})
    heard: list[str] = []
    fk.compare(["fedavg"], federation, rounds=1, seeds=2, warn=heard.append)
    assert len([sentence for sentence in heard if "differ much in scale" in sentence]) == 1
