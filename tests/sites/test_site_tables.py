"""Tables that stay at their sites give the samples that a simulation makes of all of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from federation import close, same_run, short
from wards import NAMES, Round, frames, written

import fedkin as fk
from fedkin import sites
from fedkin.core import tree
from fedkin.data import load
from fedkin.data.federation import Federation
from fedkin.data.heart import hospital_files
from fedkin.data.preparation import apply
from fedkin.runs import files
from fedkin.sites import Table

HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")


@pytest.fixture
def hospitals(tmp_path: Path) -> Round:
    return Round(tmp_path, hospital_files(tmp_path / "hospitals"), {"target_column": "disease"})


def same_samples(made: Federation, wanted: Federation, number: int) -> None:
    """The one client of a site has the samples of a client of the simulation, row for row."""
    there = wanted.only(torch.tensor([number]))
    assert torch.equal(made.x, there.x)
    assert torch.equal(made.y, there.y)
    assert (made.classes, made.task) == (there.classes, there.task)
    for one, other in ((made.train, there.train), (made.test, there.test)):
        assert torch.equal(one.rows, other.rows)


@pytest.mark.parametrize("named", [True, False])
def test_hospitals_give_the_samples_of_the_simulation(hospitals: Round, tmp_path: Path, named: bool) -> None:
    met = hospitals.met()
    simulated = load(fk.Data("heart") if named else fk.Data(str(tmp_path / "hospitals"), target="disease"))
    assert met.names == simulated.names == HOSPITALS
    for number, name in enumerate(HOSPITALS):
        same_samples(hospitals.table(name).federation(met.agreed), simulated, number)
    at_server = met.federation()
    assert (at_server.shape, at_server.classes, at_server.labels) == (simulated.shape, 2, ("no", "yes"))
    assert at_server.train.sizes.tolist() == simulated.train.sizes.tolist()
    assert not at_server.x.any()


def test_a_category_that_is_rare_at_one_site_only_adds_a_feature_that_no_training_row_has(hospitals: Round) -> None:
    """With seed 1 one category of restecg is rare in Cleveland, so sites say that there are others; there are none."""
    hospitals.options["seed"] = 1
    met, simulated = hospitals.met(), load(fk.Data("heart", seed=1))
    for number, name in enumerate(HOSPITALS):
        made = hospitals.table(name).federation(met.agreed)
        assert made.preparation is not None
        other = [feature["is"] == "other" for feature in made.preparation["features"]]
        assert sum(other) == 1
        assert not made.x[made.train[0]][:, other].any()
        same_samples(replace(made, x=made.x[:, ~torch.tensor(other)]), simulated, number)


def test_a_run_on_tables_is_the_run_on_the_stacked_engine(hospitals: Round, tmp_path: Path) -> None:
    method = short(fk.methods.fedavg(), 3)
    experiment = fk.Experiment(method, model="mlr", rounds=3, evaluate_every=1, seed=4, dtype="float64")
    one = fk.run(replace(experiment, data=fk.Data("heart"), chunk=4, threads=1), tmp_path / "one", warn=lambda _: None)
    met = hospitals.met()
    other = sites.run(met, experiment, tmp_path / "other")
    same_run(one, other, {}, tolerance=1e-5)
    models = [tree.flat({"global": run.models["global"]}) for run in (one, other)]
    close(*models, tolerance=1e-5)
    assert not hospitals.heard


def test_a_site_keeps_what_its_model_needs_to_predict(hospitals: Round, tmp_path: Path) -> None:
    experiment = fk.Experiment(short(fk.methods.ditto(), 4), model="mlr", rounds=2, seed=1)
    met = hospitals.met()
    sites.run(met, experiment, tmp_path / "run")
    (stored,) = (tmp_path / "sites" / "va").glob("runs/*/preparation.json")
    how = files.read_json(stored)
    table = hospitals.table("va")
    frame = pd.read_csv(hospitals.files["va"])
    assert np.array_equal(apply(how, frame, "va"), table.federation(met.agreed).x.numpy())
    assert list(how["sites"]) == ["va"]
    assert how["labels"] == ["no", "yes"]


def test_tables_that_differ_give_the_samples_of_the_simulation(tmp_path: Path) -> None:
    """Columns that a site lacks, other categories and other ways to write a date."""
    tables = frames()
    round = Round(tmp_path, written(tmp_path / "wards", tables))
    alike = {name: frame.copy() for name, frame in tables.items()}
    alike["south"]["admitted"] = pd.to_datetime(alike["south"]["admitted"], format="%d.%m.%Y").dt.strftime("%Y-%m-%d")
    written(tmp_path / "alike", alike)
    met, simulated = round.met(), load(fk.Data(str(tmp_path / "alike"), target="outcome"))
    assert met.names == simulated.names == NAMES
    for number, name in enumerate(NAMES):
        same_samples(round.table(name).federation(met.agreed), simulated, number)


@pytest.mark.parametrize("standardise", ["site", "none"])
def test_numbers_to_regress(tmp_path: Path, standardise: str) -> None:
    tables = frames()
    for frame in tables.values():
        frame["outcome"] = frame["age"] * 3.7 + np.arange(len(frame))
    few = {name: frame[["age", "ward", "outcome"]] for name, frame in tables.items()}
    round = Round(tmp_path, written(tmp_path / "wards", few), {"standardise": standardise})
    data: dict[str, Any] = {"target": "outcome", "standardise": standardise}
    met, simulated = round.met(), load(fk.Data(str(tmp_path / "wards"), **data))
    assert (met.agreed["task"], met.federation().classes) == ("regress", 1)
    assert simulated.target_scale is not None
    for number, name in enumerate(NAMES):
        made = round.table(name).federation(met.agreed)
        same_samples(made, simulated, number)
        assert made.target_scale is not None
        assert made.target_scale.tolist() == simulated.target_scale[number : number + 1].tolist()


def test_the_rows_of_one_client_of_a_common_file(tmp_path: Path) -> None:
    tables = frames()
    whole = pd.concat([frame.assign(site=name) for name, frame in tables.items()])
    whole.to_csv(tmp_path / "all.csv", index=False)
    alone = Round(tmp_path, written(tmp_path / "wards", tables))
    for name in NAMES:
        own = Table(name, tmp_path / "all.csv", target_column="outcome", client_column="site")
        said = Table("x", tmp_path / "all.csv", target_column="outcome", client_column="site", client=name)
        file = Table(name, tmp_path / "wards", target_column="outcome", client=name)
        told = alone.table(name).told()
        assert file.told() == told
        kinds = {column["name"]: column for column in own.told()["columns"]}
        assert "site" not in kinds
        assert all(kinds[column["name"]] == column for column in told["columns"])
        assert said.told()["sizes"] == told["sizes"]
    missing = Table("east", tmp_path / "all.csv", target_column="outcome", client_column="site")
    with pytest.raises(fk.BadInput, match="There is no client called 'east'"):
        missing.told()


def test_the_division_depends_on_the_seed_and_the_name_only(tmp_path: Path) -> None:
    paths = written(tmp_path, {"a": frames()["north"]})

    def training(name: str, **options: Any) -> list[int]:
        found = Table(name, paths["a"], target_column="outcome", **options).rows.parts[0].tolist()
        assert len(found) == 60
        return found

    assert training("a") == training("a", drop=("age",))
    assert training("a") != training("b")
    assert training("a") != training("a", seed=1)


def test_a_check_sum_changes_with_any_value(tmp_path: Path) -> None:
    table = frames()["north"]
    secret, found = b"k" * 16, set()
    for change in ({}, {"age": 1}, {"outcome": "other"}, {"ward": "x"}):
        other = table.copy()
        other.loc[0, list(change)] = list(change.values())
        (path,) = written(tmp_path / str(len(found)), {"a": other}).values()
        found.add(Table("a", path, target_column="outcome").digest(secret))
    assert len(found) == 4
    assert Table("a", path, target_column="outcome").digest(b"l" * 16) not in found


def test_all_that_is_agreed_is_json(hospitals: Round) -> None:
    agreed = hospitals.met().agreed
    assert json.loads(json.dumps(agreed)) == agreed
