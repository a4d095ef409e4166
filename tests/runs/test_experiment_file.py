"""Experiments as files: TOML that is read back as it was, and the documented example."""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedkin as fk
from fedkin.comparison.arms import read_arms
from fedkin.methods import METHODS
from fedkin.runs.experiment_file import read_file, without_null, write_file
from fedkin.runs.toml import NULL, toml

ROOT = Path(__file__).resolve().parents[2]

texts = st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: text != NULL)
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(texts, values, max_size=4))
def test_any_table_is_read_as_it_was_written(table: dict[str, Any]) -> None:
    assert without_null(tomllib.loads(toml(table))) == table


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("ending", ["toml", "json"])
def test_an_experiment_of_every_method_survives_a_file(tmp_path: Path, name: str, ending: str) -> None:
    experiment = fk.Experiment(METHODS[name](), fk.Data("digits", clients=3), rounds=7, score=("post",))
    path = tmp_path / f"e.{ending}"
    write_file(path, experiment.described())
    assert fk.Experiment.from_json(read_file(path)) == experiment


def test_a_file_is_not_written_over_and_has_a_known_ending(tmp_path: Path) -> None:
    write_file(tmp_path / "e.toml", {"a": 1})
    for name, sentence in {
        "e.toml": "exists already",
        "e.yaml": "saved as .toml or .json",
        "x/e.toml": "no folder",
    }.items():
        with pytest.raises(fk.BadInput, match=sentence):
            write_file(tmp_path / name, {"a": 1})


def test_the_documented_example_has_every_field_and_is_an_experiment(fedkin: Any, tmp_path: Path) -> None:
    path = ROOT / "docs" / "experiment.toml"
    stored = tomllib.loads(path.read_text())
    known = {field.name for field in fields(fk.Experiment)} - {"seed"} | {"seeds"}
    assert set(stored) == known
    assert set(stored["data"]) == {field.name for field in fields(fk.Data)}
    read = read_file(path)
    seeds = read.pop("seeds")
    assert seeds == [0]
    assert read_arms([str(path)])[0].name == "fedprox@train.lam=0.1"
    fk.Experiment.from_json(read | {"method": "fedavg"})
    outcome = fedkin("run", str(path), "--rounds", "2", "--data", "digits", "--clients", "3", "--out", "here")
    assert outcome.code == 0, outcome.err


def test_a_saved_experiment_runs_as_the_command_would_have(fedkin: Any, tmp_path: Path) -> None:
    words = ["run", "fedprox@lam=3", "--data", "digits", "--clients", "4", "--rounds", "2", "--evaluate-every", "1"]
    words += ["--seeds", "1,2", "--set", "epochs=1"]
    outcome = fedkin(*words, "--save", "e.toml")
    assert outcome.code == 0, outcome.err
    assert outcome.out.strip() == "e.toml"
    assert [path.name for path in tmp_path.iterdir()] == ["e.toml"], "nothing is run"
    assert fedkin("run", "e.toml", "--out", "one").code == 0
    assert fedkin(*words, "--out", "two").code == 0
    one, two = (json.loads(Path(name, "summary.json").read_text()) for name in ("one", "two"))
    assert one["accuracy"] == two["accuracy"]
    assert one["seeds"] == [1, 2]
    assert one["experiment"]["method"] == two["experiment"]["method"]


def test_a_saved_comparison_has_all_its_arms(fedkin: Any, tmp_path: Path) -> None:
    words = ["--data", "digits", "--clients", "4", "--rounds", "2", "--evaluate-every", "1"]
    assert fedkin("compare", "fedavg", "fedprox@lam=0.1,1", *words, "--splits", "2", "--save", "c.toml").code == 0
    assert len(tomllib.loads(Path("c.toml").read_text())["methods"]) == 3
    outcome = fedkin("compare", "c.toml", "ditto", "--out", "here")
    assert outcome.code == 0, outcome.err
    summary = json.loads(Path("here", "summary.json").read_text())
    assert list(summary["methods"]) == ["local", "fedavg", "fedprox@train.lam=0.1", "fedprox@train.lam=1", "ditto"]
    assert len(list(Path("here", "ditto").glob("seed-0*"))) == 2, "a run for each split"
    refused = fedkin("run", "c.toml", "--out", "there")
    assert refused.code == 2
    assert "use fedkin compare" in refused.err
