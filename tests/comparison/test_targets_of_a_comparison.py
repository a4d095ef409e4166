"""Targets of a comparison: in Python, on the command line, in the report and in exported tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fedkin as fk

DATA = fk.Data("digits", clients=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("targets") / "out"
    fk.compare(
        ["fedavg@count=2", "fedprox"], DATA, rounds=12, targets=[0.6, "fedprox"], folder=place, warn=lambda _: None
    )
    return place


def test_targets_are_counted_and_every_round_is_scored(folder: Path) -> None:
    found = fk.load_comparison(folder)
    run = found.runs["fedprox"][0]
    assert len(run.scored) == 12
    table = found.targets()
    assert table.loc[("0.6", "fedprox"), "rounds"] == run.rounds_to(0.6)
    assert table.loc[("0.6", "fedprox"), "uploads"] == run.cost_to(0.6)
    assert table.loc[("0.6", "fedprox"), "kind"] == "global"
    level = run.summary["accuracy"]["global"]["micro"]["last10"]
    assert table.loc[("fedprox", "fedprox"), "level"] == pytest.approx(level)
    assert ("0.6", "local") not in table.index  # which has no common model
    again = found.targets("post:0.6", 0.99)
    assert again.loc[("post:0.6", "local"), "reached"] == 1
    assert pd.isna(again.loc[("0.99", "fedprox"), "rounds"])
    assert again.loc[("0.99", "fedprox"), "reached"] == 0
    assert "uploads to 0.6" in found.table().columns
    with pytest.raises(fk.BadInput, match="arm"):
        found.targets("scaffold+0.1")


def test_tables_and_the_report_have_them(folder: Path, tmp_path: Path) -> None:
    found = fk.load_comparison(folder)
    rounds = int(found.targets().loc[("0.6", "fedprox"), "rounds"])
    text = found.export(tmp_path / "table.md").read_text()
    assert "rounds (uploads) to global 60.00 %" in text
    assert f"{rounds} ({rounds * 5})" in text
    assert "rounds to 0.6" in found.export(tmp_path / "table.csv").read_text()
    page = found.report().read_text()
    assert "Rounds and uploads to a target" in page
    assert "the last ten rounds of fedprox" in page


def test_the_command_prints_them_and_a_resumed_folder_may_have_others(fedkin: Any, tmp_path: Path) -> None:
    asked = ("--data", "digits", "--clients", "4", "--rounds", "6", "--target", "0.5", "--target", "fedavg+0.3")
    done = fedkin("compare", "fedavg", *asked, "--out", "out")
    said = " ".join(done.out.split())
    assert "Rounds, and model uploads, until the mean of five rounds is above a target" in said
    assert "not reached" in said
    again = json.loads(fedkin("compare", "--resume", "out", "--json").out)
    assert [one["target"] for one in again["targets"]] == ["0.5", "fedavg+0.3"]
    other = json.loads(fedkin("compare", "--resume", "out", "--target", "0.1", "--json").out)
    assert other["targets"][0]["rows"]["fedavg"]["rounds"] == [5]
    alone = fedkin("run", "fedavg", "--data", "digits", "--rounds", "6", "--target", "0.1", "--out", "alone")
    assert "until the mean of five rounds" in alone.out
    fedkin("compare", "fedavg", *asked, "--save", "both.toml")
    assert "fedavg+0.3" in Path("both.toml").read_text()
    assert "until the mean of five rounds" in fedkin("compare", "both.toml", "--out", "filed").out


def test_what_cannot_be_counted_is_refused_before_anything_runs(fedkin: Any, tmp_path: Path) -> None:
    common = ("compare", "fedavg", "--data", "digits", "--rounds", "6", "--out", "never")
    for more, words in (
        (("--target", "0.5", "--evaluate-every", "2"), "every round scored, not every 2"),
        (("--target", "fedav"), "fedavg"),
        (("--target", "95"), "90%, not 90"),
        (("--target", "test:0.9"), "no arm here is scored by it"),
    ):
        refused = fedkin(*common, *more)
        assert refused.code == 2
        assert words in refused.err
        assert not Path("never").exists()
