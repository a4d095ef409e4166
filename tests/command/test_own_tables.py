"""Own tables on the command line: what is said of their columns, and how they are chosen."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hospitals import hospitals, write_hospitals
from small import forget_checksums

import fedkin as fk
from fedkin.data import Data, load
from fedkin.data.picture import draw

COLUMNS = ["--client-column", "hospital", "--target-column", "outcome"]


@pytest.fixture
def table(tmp_path: Path) -> str:
    return str(write_hospitals(tmp_path / "hospitals.csv"))


def test_a_table_is_told_before_the_run_and_in_the_report(fedkin, table: str, tmp_path: Path) -> None:
    outcome = fedkin("run", "fedavg", "--data", table, *COLUMNS, "--rounds", "1", "--out", "here")
    assert outcome.code == 0, outcome.err
    told = " ".join(outcome.err.split())
    assert "patient_id left out, unique" in told
    assert "age number, standardised" in told
    assert "ward 7 categories" in told
    assert told.index("7 categories") < told.index("round 1/1")
    page = (tmp_path / "here" / "report.html").read_text()
    assert "<td>patient_id</td><td>left out, unique</td>" in page
    folder = tmp_path / "here" / "fedavg" / "seed-0"
    assert json.loads((folder / "preparation.json").read_text())["target"] == "outcome"


def test_data_show_tells_the_columns_and_names_the_classes(fedkin, table: str) -> None:
    outcome = fedkin("data", "show", table, *COLUMNS, "--drop", "ward,admitted", "--out", "p.svg")
    assert outcome.code == 0, outcome.err
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert "patient_id left out, unique" in lines
    assert "ward left out, as --drop says" in lines
    assert "Columns that are left out" not in outcome.out  # once is enough
    assert "client train test readmitted recovered" in lines
    assert [line.split()[1] for line in lines if line.startswith("Hospital")] == [str(i) for i in range(1, 13)]


def test_columns_and_scaling_are_chosen(fedkin, table: str, tmp_path: Path) -> None:
    options = ["--features", "age, ward", "--standardise", "all", "--rounds", "1", "--out", "here"]
    assert fedkin("run", "fedavg", "--data", table, *COLUMNS, *options).code == 0
    run = fk.load_run(tmp_path / "here")
    assert run.experiment["data"]["features"] == ["age", "ward"]
    assert {feature["column"] for feature in (run.preparation or {})["features"]} == {"age", "ward"}
    assert (run.preparation or {})["standardise"] == "all"
    assert run.federation.preparation == run.preparation


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--target-column", "outcme"], "set 'target' (--target-column)"),
        (["--target-column", "outcome", "--client-column", "hospitl"], "set 'client' (--client-column)"),
        ([*COLUMNS, "--drop", "wards"], "did you mean ward?"),
        ([*COLUMNS, "--standardise", "sites"], "did you mean site"),
        ([*COLUMNS, "--task", "regress"], "no number to regress"),
        (["--client-column", "hospital", "--target-column", "age"], "--task classify or --task regress"),
        (["--client-column", "hospital", "--target-column", "Outcome"], "did you mean outcome?"),
        (["--client-column", "hospital", "--target-column", "hospital"], "choose another --target-column"),
        (["--client-column", "hospital", "--target-column", "country"], "one value only, 'NL': there is nothing"),
        (["--client-column", "hospital", "--target-column", "admitted"], "is dates; choose another --target-column"),
    ],
)
def test_mistakes_name_the_option(fedkin, table: str, options: list[str], sentence: str) -> None:
    outcome = fedkin("data", "show", table, *options)
    assert outcome.code == 2
    assert sentence in " ".join(outcome.err.split())


def test_a_column_that_gives_every_row_a_client_of_its_own(fedkin, tmp_path: Path) -> None:
    hospitals(sizes=(10, 20)).to_csv(tmp_path / "a.csv", index=False)
    options = ["--client-column", "patient_id", "--target-column", "outcome", "--rounds", "1"]
    outcome = fedkin("compare", "fedavg", "--data", "a.csv", *options)
    assert outcome.code == 2
    said = (
        r"none of the \d+ clients has any: they have at most 1 sample each; is 'patient_id' the right --client-column\?"
    )
    assert re.search(said, " ".join(outcome.err.split()))
    options[1] = "hospital"
    outcome = fedkin("compare", "fedavg", "--data", "a.csv", *options, "--test", "0")
    assert "no client has any; raise --test." in " ".join(outcome.err.split())


def test_the_help_of_data_show_is_whole(fedkin) -> None:
    said = fedkin("data", "show", "--help").out
    assert "--.svg" not in said
    options = said[said.index("Options") :].splitlines()
    assert not [line for line in options if re.fullmatch(r"[│|\s]+", line) and line.strip("│| ") == "" and "│" in line]
    for option in ("--features", "--drop", "--standardise", "--task"):
        assert option in said


def test_the_legends_of_a_picture_with_two_classes_do_not_overlap(tmp_path: Path) -> None:
    root = ElementTree.parse(draw(load(Data("heart")), tmp_path / "p.svg")).getroot()
    words = {text.text: text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"no disease", "disease", "cleveland"} <= set(words)
    share, training = words["share of the client's training samples"], words["training"]
    assert abs(float(share.get("y", 0)) - float(training.get("y", 0))) > 20
    assert float(training.get("y", 0)) < float(root.get("height", 0))


def test_a_run_on_unscaled_data_of_an_older_version_goes_on(tmp_path: Path) -> None:
    """Older versions did not scale and did not write down that they did not."""
    hospitals(sizes=(20, 30))[["hospital", "age", "outcome"]].to_csv(tmp_path / "a.csv", index=False)
    data = Data(str(tmp_path / "a.csv"), client="hospital", target="outcome", standardise="none")
    experiment = fk.Experiment(fk.methods.fedavg(), data, rounds=2, evaluate_every=1)
    fk.run(experiment, tmp_path / "run", warn=lambda _: None)
    forget_checksums(tmp_path / "run")
    path = tmp_path / "run" / "experiment.json"
    stored = json.loads(path.read_text())
    for name in ("features", "drop", "standardise", "task"):
        del stored["data"][name]
    path.write_text(json.dumps(stored))
    (tmp_path / "run" / "preparation.json").unlink()
    run = fk.load_run(tmp_path / "run")
    assert run.preparation is None
    assert run.federation.preparation == load(data).preparation
    longer = fk.Experiment(fk.methods.fedavg(), data, rounds=3, evaluate_every=1)
    assert fk.run(longer, tmp_path / "run", resume=True, warn=lambda _: None).summary["rounds"] == 3
    assert fk.Experiment.from_json({"method": "fedavg", "data": {"name": "a.csv"}}).data == Data(
        "a.csv"
    )  # not a record
