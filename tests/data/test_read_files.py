"""Files of own data, of every kind that there is a reader for."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedkin.data import Data, load
from fedkin.data.natural_order import natural_order
from fedkin.data.read_files import read_file
from fedkin.errors import BadInput


def frame() -> pd.DataFrame:
    gen = np.random.default_rng(0)
    table = pd.DataFrame({"age": gen.normal(50, 10, 40).round(1), "ward": gen.choice(["A", "B"], 40)})
    return table.assign(client=[f"site {i % 3}" for i in range(40)], label=gen.choice(["ill", "wéll"], 40))


def written(path: Path) -> Path:
    table, ending = frame(), path.suffix
    if ending == ".xlsx":
        table.to_excel(path, index=False)
    elif ending in (".jsonl", ".ndjson"):
        table.to_json(path, orient="records", lines=True)
    elif ending == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if ending == ".tsv" else ",")
    return path


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".xlsx", ".jsonl", ".ndjson", ".CSV"])
def test_every_kind_gives_the_same_samples(tmp_path: Path, ending: str) -> None:
    expected = load(Data(str(written(tmp_path / "a.csv"))))
    found = load(Data(str(written(tmp_path / f"b{ending}"))))
    assert found.clients == ("site 0", "site 1", "site 2")
    assert found.labels == expected.labels == ("ill", "wéll")
    assert found.x.allclose(expected.x)
    assert found.y.equal(expected.y)
    assert found.preparation == expected.preparation


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_separator_is_found(tmp_path: Path, mark: str) -> None:
    frame().to_csv(tmp_path / "a.csv", sep=mark, index=False)
    assert list(read_file(tmp_path / "a.csv").frame.columns) == ["age", "ward", "client", "label"]


def test_a_separator_inside_quotes_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('"weight; kg, net; or so; so",label\n1,2\n')
    assert list(read_file(tmp_path / "a.csv").frame.columns) == ["weight; kg, net; or so; so", "label"]


def test_decimal_commas_between_semicolons(tmp_path: Path) -> None:
    table = frame().assign(dose=[-0.5, 2, None, 3.25] * 10, level=["low", "1.5", "high", "low"] * 10)
    table.to_csv(tmp_path / "a.csv", index=False)
    commas = table.assign(level=table["level"].str.replace(".", ","))
    commas.to_csv(tmp_path / "b.csv", index=False, sep=";", decimal=",")
    assert "-0,5" in (tmp_path / "b.csv").read_text()
    plain, read = (read_file(tmp_path / name).frame for name in ("a.csv", "b.csv"))
    pd.testing.assert_frame_equal(plain, read)
    as_text = read_file(tmp_path / "b.csv", ["age"]).frame["age"]
    assert as_text.tolist() == [str(age) for age in table["age"]]
    assert load(Data(str(tmp_path / "b.csv"), target="age")).task == "regress"
    commas.to_csv(tmp_path / "c.csv", index=False, decimal=",")  # between commas they are text
    assert "decimal commas" in " ".join(load(Data(str(tmp_path / "c.csv"))).notes)


def test_a_file_of_no_kind_that_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pic.png").write_text("x")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=r"pic\.png is not read by fedkin; give a file of these kinds: \.csv, \.tsv"):
        load(Data("pic.png"))
    with pytest.raises(BadInput, match=r"There is no dataset called 'other\.png'"):
        Data("other.png")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    frame().to_csv(tmp_path / "a.csv", index=False, encoding=encoding)
    federation = load(Data(str(tmp_path / "a.csv")))
    assert federation.labels == ("ill", "wéll")
    told = ["a.csv is not encoded in UTF-8; it was read as Latin-1."] if encoding == "latin-1" else []
    assert list(federation.notes) == told


@pytest.mark.parametrize("ending", [".json", ".feather", ".sav", ".xls", ".dta", ".rds"])
def test_other_kinds_are_told_how_to_convert(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"table{ending}").write_text("x")
    with pytest.raises(BadInput, match=r"make it a CSV file, for example by .*'table.csv'"):
        load(Data(str(tmp_path / f"table{ending}")))
    assert Data(f"table{ending}").own  # so the sentence comes, and not that there is no such dataset


def test_excel_without_openpyxl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, before = written(tmp_path / "a.xlsx"), builtins.__import__

    def refusing(name: str, *more: Any, **rest: Any) -> Any:
        if name.split(".")[0] == "openpyxl":
            raise ImportError("No module named 'openpyxl'")
        return before(name, *more, **rest)

    monkeypatch.setattr(builtins, "__import__", refusing)
    with pytest.raises(BadInput, match=r"pip install 'fedkin\[excel\]', or save the sheet as CSV"):
        read_file(path)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    for name, text in (("a.xlsx", "no workbook"), ("a.jsonl", '{"a": 1')):
        (tmp_path / name).write_text(text)
        with pytest.raises(BadInput, match=f"{name} could not be read"):
            read_file(tmp_path / name)


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x, y,y \n1,2,3\n")
    with pytest.raises(BadInput, match="two columns called y"):
        read_file(tmp_path / "a.csv")


def test_sites_sort_as_people_do(tmp_path: Path) -> None:
    assert natural_order(["site 10", "Site 9", "site 2", "b", "7", "10"]) == [
        "7",
        "10",
        "b",
        "site 2",
        "Site 9",
        "site 10",
    ]
    table = frame().assign(client=[f"site {i % 11 + 1}" for i in range(40)])
    table.to_csv(tmp_path / "a.csv", index=False)
    names = tuple(f"site {i}" for i in range(1, 12))
    assert load(Data(str(tmp_path / "a.csv"))).clients == names
    (tmp_path / "folder").mkdir()
    for name, rows in table.groupby("client"):
        rows.drop(columns="client").to_csv(tmp_path / "folder" / f"{name}.csv", index=False)
    assert load(Data(str(tmp_path / "folder"))).clients == names


def test_a_large_file_is_said_to_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "a.csv")
    load(Data(str(path)))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("fedkin.data.own_tables.LARGE", 100)
    load(Data(str(path)))
    assert capsys.readouterr().err.startswith("Reading a.csv, 0 MB")


def test_a_file_that_lacks_a_column(tmp_path: Path) -> None:
    """It counts as missing there, and the user is told."""
    table = frame().drop(columns="client")
    table.to_csv(tmp_path / "a.csv", index=False)
    table.drop(columns="age").to_csv(tmp_path / "b.csv", index=False)
    federation = load(Data(str(tmp_path)))
    assert federation.notes == ("b.csv lacks age, which count as missing there.",)
    features = (federation.preparation or {})["features"]
    assert features[:2] == [{"column": "age", "is": "number"}, {"column": "age", "is": "missing"}]
    mine = federation.x[federation.train[1]]
    assert (mine[:, 0] == 0).all()
    assert (mine[:, 1] == 1).all()
