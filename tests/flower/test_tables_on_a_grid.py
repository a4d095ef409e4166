"""Hospitals whose configuration names their tables, on a grid of Flower's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from federation import same_run, short
from in_process import InProcess

import fedkin as fk
from fedkin import flower
from fedkin.data.heart import hospital_files
from fedkin.sites.tables import from_config


def test_hospitals_on_a_grid_are_stacked(tmp_path: Path) -> None:
    app = flower.client(samples=lambda name, context: from_config(name, context.node_config), folder=tmp_path / "sites")
    grid, said = InProcess(), list[str]()
    for name, path in hospital_files(tmp_path / "hospitals").items():
        grid.add(app, **{"name": name, "data": str(path), "target-column": "disease", "test": "0.25"})
    experiment = fk.Experiment(short(fk.methods.fedavg(), 3), model="mlr", rounds=3, evaluate_every=1, seed=4)
    experiment = replace(experiment, dtype="float64")
    other = flower.run(grid, experiment, tmp_path / "grid", sites=4, warn=said.append)
    stacked = replace(experiment, data=fk.Data("heart"), chunk=4, threads=1)
    one = fk.run(stacked, tmp_path / "stacked", warn=lambda sentence: None)
    same_run(one, other, {}, tolerance=1e-5)
    assert "  disease   to predict, 2 classes: no, yes" in said
    assert len(list((tmp_path / "sites").glob("*/runs/*/preparation.json"))) == 4
