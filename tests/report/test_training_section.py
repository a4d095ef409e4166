"""Curves of the relevant clients' training loss, of gap and of skew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("plotly")

import fedkin as fk
from fedkin.report.charts.curves import number_curves
from fedkin.report.page import page, sections
from fedkin.report.study import studied

DATA = fk.Data("digits", clients=6, irrelevant="flip:0.4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("training") / "out"
    methods: list[Any] = ["fedavg", "oracle@count=4"]
    fk.compare(methods, DATA, rounds=3, seeds=2, evaluate_every=1, folder=place, warn=lambda _: None)
    return place


def line_of(figure: Any, name: str) -> Any:
    return next(trace for trace in figure["data"] if trace.get("name") == name)


def test_the_relevant_clients_loss_has_a_line_a_method(folder: Path) -> None:
    study = studied(folder)
    found = sections(study)["training"]
    assert "<h2>Training loss of the relevant clients</h2>" in found.html
    line = line_of(found.figures["relevant-loss"], "fedavg")
    runs = study.entries["fedavg"].runs
    wanted = [sum(run.lines[r]["train"]["relevant_loss"] for run in runs) / 2 for r in range(3)]
    assert line["y"] == pytest.approx(wanted)
    assert line["x"] == [1, 2, 3]
    assert 'id="relevant-loss"' in page(study)
    assert set(found.figures) == {"relevant-loss"}


def test_gap_and_skew_are_drawn_where_they_are_recorded(tmp_path: Path) -> None:
    clean = replace(DATA, irrelevant=None)
    experiment = fk.Experiment(fk.methods.fedavg(), clean, "mlr", 3, evaluate_every=1, heterogeneity=True)
    fk.run(experiment, tmp_path / "run")
    study = studied(tmp_path / "run")
    found = sections(study)["training"]
    assert "<h2>Gap and skew</h2>" in found.html
    lines = study.runs[0].lines
    assert line_of(found.figures["gap"], "fedavg")["y"] == pytest.approx([x["heterogeneity"]["gap"] for x in lines])
    fk.run(replace(experiment, heterogeneity=False), tmp_path / "plain")
    assert "training" not in sections(studied(tmp_path / "plain"))


def test_a_round_without_a_value_is_a_gap_and_outliers_do_not_flatten_the_rest() -> None:
    values: Any = {r: [1.0 + 0.01 * r] for r in range(1, 30)} | {7: [], 8: [60.0]}
    figure = number_curves([("a", "a", values)], {"a": ("#0072b2", "solid")}, "skew", middle=True)
    line = line_of(figure, "a")
    assert line["y"][6] is None
    several: Any = {r: [1.0, 2.0] for r in range(1, 9)} | {4: []}
    bands = number_curves([("a", "a", several)], {"a": ("#0072b2", "solid")}, "skew")["data"][:-1]
    assert [trace["x"] for trace in bands] == [[1, 2, 3]] * 2 + [[5, 6, 7, 8]] * 2
    assert line["y"][7] == 60.0
    assert figure["layout"]["yaxis"]["range"][1] < 2
    assert "range" not in number_curves([("a", "a", values)], {"a": ("#0072b2", "solid")}, "loss")["layout"]["yaxis"]
