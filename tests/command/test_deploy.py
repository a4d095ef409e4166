"""fedkin export, predict and join: what they print, write and refuse."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pandas as pd
import pytest

import fedkin as fk
from fedkin.deploy import choose

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from hospitals import hospitals


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a comparison, the patients of a hospital that was there, and of one that was not."""
    place, table = tmp_path_factory.mktemp("place"), hospitals(sizes=(40, 60), wrong=())
    table[table["hospital"] != "Hospital 12"].to_csv(place / "patients.csv", index=False)
    table[table["hospital"] == "Hospital 3"].to_csv(place / "three.csv", index=False)
    table[table["hospital"] == "Hospital 12"].to_csv(place / "new.csv", index=False)
    data = fk.Data(str(place / "patients.csv"), client="hospital", target="outcome")
    fk.compare(["fedavg", "fedmcsa"], data, rounds=3, evaluate_every=3, folder=place / "out")
    return place


def test_export_says_what_it_took_and_prints_the_folder(fedkin, place: Path) -> None:
    found = fedkin("export", str(place / "out"), "--client", "Hospital 3", "--method", "fedavg", "-o", "model")
    assert (found.code, found.out) == (0, "model\n")
    assert found.err == "Try: python model/predict.py rows.csv\n"
    names = ["README.md", "model.json", "model.safetensors", "network.pt2", "predict.py", "preparation.json", "rows.py"]
    assert sorted(path.name for path in Path("model").iterdir()) == names
    again = fedkin("export", str(place / "out"), "--client", "Hospital 3", "-o", "model")
    assert again.err.startswith("This is ")
    wrong = fedkin("export", str(place / "out"), "--client", "Hospital 33", "-o", "other")
    assert wrong.code == 2
    assert "no client called 'Hospital 33'; did you mean Hospital 3" in wrong.err
    assert not Path("other").exists()
    nowhere = fedkin("export", str(place / "out"), "--client", "Hospital 3", "-o", "/proc/x")
    assert nowhere.code == 2
    assert nowhere.err == "fedkin: /proc/x cannot be written: No such file or directory; choose another -o.\n"


def test_predict_prints_or_writes_a_table(fedkin, place: Path) -> None:
    printed = fedkin("predict", str(place / "out"), str(place / "three.csv"), "--method", "fedavg")
    assert printed.code == 0
    table = pd.read_csv(io.StringIO(printed.out))
    rows = pd.read_csv(place / "three.csv")
    assert table.columns.tolist() == ["row", "prediction", "probability readmitted", "probability recovered"]
    assert table["row"].tolist() == list(range(1, len(rows) + 1))
    run = fk.load_run(place / "out" / "fedavg")
    assert table["prediction"].tolist() == fk.predict(run, rows, "Hospital 3")["prediction"].tolist()
    kept = fedkin(
        "predict", str(place / "out"), str(place / "three.csv"), "--method", "fedavg", "--keep", "-o", "p.csv"
    )
    assert kept.out == ""
    assert f"{len(rows)} predictions are in p.csv" in kept.err
    assert pd.read_csv("p.csv").columns.tolist() == ["row", *rows.columns, *table.columns[1:]]
    new = fedkin("predict", str(place / "out"), str(place / "new.csv"), "--method", "fedavg")
    assert "judged by the common model: Hospital 12" in new.err
    none = fedkin("predict", str(place / "out"), str(place / "new.csv"), "--method", "fedmcsa")
    assert none.code == 2
    pd.read_csv(place / "three.csv").drop(columns=["ward", "age"]).to_csv("less.csv", index=False)
    less = fedkin("predict", str(place / "out"), "less.csv", "--method", "fedavg")
    assert less.code == 2
    assert less.err.startswith("fedkin: The table lacks the column age, ward;")
    missing = fedkin("predict", str(place / "out"), "nothing.csv")
    assert (missing.code, missing.err) == (2, "fedkin: There is no file nothing.csv.\n")


def test_predict_follows_the_comparison(fedkin, place: Path) -> None:
    out, rows = place / "out", pd.read_csv(place / "patients.csv")
    found = fedkin("predict", str(out), str(place / "patients.csv"), "--keep", "-o", "p.csv")
    assert found.code == 0
    assert found.err.startswith("Each site gets what the comparison recommends to it")
    table = pd.read_csv("p.csv")
    for site in ("Hospital 1", "Hospital 5"):
        mine = rows["hospital"] == site
        wanted = fk.predict(choose(out, site).run, rows[mine], site)
        assert table.loc[mine, "prediction"].tolist() == wanted["prediction"].tolist()
    new = fedkin("predict", str(out), str(place / "new.csv"))
    assert new.err == "Not in the comparison, so judged by the common model of fedavg: Hospital 12.\n"
    rows.drop(columns=["ward", "age"]).to_csv("less.csv", index=False)
    less = fedkin("predict", str(out), "less.csv")
    assert less.err.startswith("fedkin: The table lacks the column age, ward;")
    nowhere = fedkin("predict", str(out), str(place / "new.csv"), "-o", "nowhere/p.csv")
    assert nowhere.code == 2
    assert nowhere.err == "fedkin: nowhere/p.csv cannot be written: No such file or directory; choose another -o.\n"


def test_codes_with_leading_zeros_stay_as_written(fedkin, tmp_path: Path) -> None:
    """Rows to predict that have only codes like 010 are no numbers, because the column was a category in training."""
    draw = pd.DataFrame({"site": ["a", "b"] * 40, "code": ["010", "X20"] * 20 + ["X20", "010"] * 20, "v": range(80)})
    draw["v"] = (draw["v"] * 37 % 80) / 7
    draw["label"] = (draw["code"] == "010").map({True: "sick", False: "well"})
    draw.to_csv("t.csv", index=False)
    data = fk.Data("t.csv", client="site", target="label")
    fk.run(fk.Experiment(fk.methods.fedavg(count=2, eta=0.5), data, rounds=20, evaluate_every=20), "run")
    draw[draw["code"] == "010"].head(5).to_csv("rows.csv", index=False)
    found = fedkin("predict", "run", "rows.csv")
    assert pd.read_csv(io.StringIO(found.out))["prediction"].tolist() == ["sick"] * 5, found.err


def test_join_prints_a_table_and_a_verdict(fedkin, place: Path) -> None:
    found = fedkin("join", str(place / "out"), str(place / "new.csv"), "--splits", "2")
    assert found.code == 0, found.err
    lines = found.out.strip().splitlines()
    assert lines[-1].startswith("Hospital 12: ")
    shown = [line.split("  ")[0] for line in lines[1:-1]]
    assert shown == ["alone", "the common model", "the common model, fine-tuned", "its kin's models, fine-tuned"]
    said = fedkin("join", str(place / "out"), str(place / "new.csv"), "--splits", "2", "--json", "--method", "fedmcsa")
    value = json.loads(said.out)
    assert value["site"] == "Hospital 12"
    assert set(value["scores"]) == {"alone", "its kin's models, fine-tuned"}
    there = fedkin("join", str(place / "out"), str(place / "three.csv"))
    assert there.code == 2
    assert there.err.startswith("fedkin: Hospital 3 took part in this run")
    few = fedkin("join", str(place / "out"), str(place / "new.csv"), "--test", "2")
    assert few.err.strip().startswith("fedkin: --test is a share between 0 and 1")
    several = fedkin("join", str(place / "out"), str(place / "patients.csv"))
    assert "has rows of 11 sites" in several.err
