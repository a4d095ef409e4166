"""What sites with tables agree on, who does not fit, and what both sides read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from wards import NAMES, Round, column, frames, site, written

import fedkin as fk
from fedkin.errors import Unfinished
from fedkin.sites import Arrays, Site, Table
from fedkin.sites.table_agreement import agree_on_tables, classes_of


@pytest.fixture
def round(tmp_path: Path) -> Round:
    return Round(tmp_path, written(tmp_path / "wards", frames()))


def test_the_union_of_columns_and_categories_is_agreed_on_and_shown(round: Round) -> None:
    agreed = round.met().agreed
    columns = {one["name"]: one for one in agreed["columns"]}
    assert list(columns) == ["age", "ward", "admitted", "lactate", "smoker", "outcome"]
    assert columns["ward"]["categories"] == ["bones", "eyes", "heart", "skin"]
    assert columns["lactate"]["missing"]
    assert columns["smoker"]["missing"]
    assert not columns["age"]["missing"]
    assert (agreed["labels"], agreed["classes"], agreed["shape"]) == (["home", "ward"], 2, [11])
    assert round.said == [
        "What sites agree on:",
        "  age       number, standardised",
        "  ward      4 categories: bones, eyes, heart, skin",
        "  admitted  date, standardised",
        "  lactate   number, standardised; missing at north, west, filled with the median",
        "  smoker    2 categories: no, yes; missing at north, south",
        "  outcome   to predict, 2 classes: home, ward",
    ]
    assert not round.heard


def test_what_a_site_lacks_is_missing_there(round: Round) -> None:
    met = round.met()
    made = round.table("north").federation(met.agreed)
    assert made.preparation is not None
    features = [(one["column"], one["is"]) for one in made.preparation["features"]]
    assert not made.x[:, features.index(("lactate", "number"))].any()
    assert made.x[:, features.index(("lactate", "missing"))].all()
    assert made.x[:, features.index(("smoker", "missing"))].all()
    at_west = round.table("west").federation(met.agreed)
    assert not at_west.x[:, features.index(("smoker", "missing"))].any()
    assert set(at_west.x[:, features.index(("lactate", "missing"))].tolist()) == {0.0, 1.0}


def test_classes_are_those_of_all_sites() -> None:
    def labels(*each: tuple[Any, ...]) -> tuple[list[str], int]:
        return classes_of({str(number): site(labels=mine) for number, mine in enumerate(each)})

    assert labels(("well",), ("sick", "dead")) == (["dead", "sick", "well"], 3)
    assert labels((1, 2), (0, 4)) == ([], 5)
    assert labels((2,), (1, 10)) == (["1", "2", "10"], 3)
    assert labels((0,), (1000,)) == (["0", "1000"], 2)


def test_a_class_has_the_same_number_at_all_sites(tmp_path: Path) -> None:
    """No site has all classes, and of each the first is another one."""
    tables = frames()
    for frame, (one, two) in zip(tables.values(), (("b", "c"), ("a", "c"), ("c", "d")), strict=True):
        frame["outcome"] = np.where(np.arange(len(frame)) % 2, one, two)
    round = Round(tmp_path, written(tmp_path / "wards", tables))
    agreed = round.met().agreed
    assert agreed["labels"] == ["a", "b", "c", "d"]
    for name in NAMES:
        made = round.table(name).federation(agreed)
        assert [made.labels[number] for number in made.y.tolist()] == tables[name]["outcome"].tolist()


def test_a_site_with_one_class_takes_part(tmp_path: Path) -> None:
    tables = frames()
    tables["west"]["outcome"] = "ward"
    round = Round(tmp_path, written(tmp_path / "wards", tables))
    made = round.table("west").federation(round.met().agreed)
    assert (made.classes, set(made.y.tolist())) == (2, {1})


def as_text(tables: dict[str, pd.DataFrame]) -> None:
    tables["west"]["age"] = [f"about {age}0" for age in tables["west"]["age"] // 10]


def as_number(tables: dict[str, pd.DataFrame]) -> None:
    tables["north"]["ward"] = np.arange(80) % 3


def as_date(tables: dict[str, pd.DataFrame]) -> None:
    tables["south"]["age"] = tables["south"]["admitted"]


def other_target(tables: dict[str, pd.DataFrame]) -> None:
    tables["south"]["label"] = tables["south"]["outcome"]


def other_task(tables: dict[str, pd.DataFrame]) -> None:
    tables["west"]["outcome"] = tables["west"]["age"] + 0.25


def other_labels(tables: dict[str, pd.DataFrame]) -> None:
    tables["west"]["outcome"] = np.arange(40) % 2


def strangers(tables: dict[str, pd.DataFrame]) -> None:
    tables["west"] = tables["west"][["smoker", "outcome"]]


ODD: dict[str, tuple[str, Callable[[dict[str, pd.DataFrame]], None], dict[str, Any], str]] = {
    "text": ("west", as_text, {}, "Its column 'age' is text, and at north, south it is a number; make it the same"),
    "number": ("north", as_number, {}, "Its column 'ward' is a number, and at south, west it is text"),
    "date": ("south", as_date, {}, "Its column 'age' is a date, and at north, west it is a number"),
    "target": ("south", other_target, {"target_column": "label"}, "is called 'label', that of others 'outcome'"),
    "task": ("west", other_task, {}, "Its target is to regress, that of others to classify"),
    "labels": ("west", other_labels, {}, "Its classes are numbers, those of others texts"),
    "scale": ("west", lambda tables: None, {"standardise": "none"}, "'standardise' is 'none', that of others 'site'"),
    "columns": ("west", strangers, {}, "It has none of the columns of the other sites: admitted, age, ward."),
}


@pytest.mark.parametrize("case", ODD)
def test_a_site_that_does_not_fit_is_refused_on_both_sides(tmp_path: Path, case: str) -> None:
    name, change, options, words = ODD[case]
    tables = frames()
    change(tables)
    round = Round(tmp_path, written(tmp_path / "wards", tables), {name: options})
    met = round.met(2)
    assert met.names == tuple(one for one in NAMES if one != name)
    assert any(f"Site {name} was not taken" in note and words in note for note in met.federation().notes)
    assert any(f"does not take site {name}" in heard and words in heard for heard in round.heard)
    assert all(name not in str(one.get("said")) for one in met.agreed["columns"])


def test_arrays_among_tables_are_refused(round: Round, tmp_path: Path) -> None:
    mine = Arrays("east", lambda: (np.zeros((9, 2)), np.arange(9) % 2))
    transport = round.here()
    transport.make["east"] = lambda: Site("east", tmp_path / "east", mine, warn=round.heard.append)
    met = round.met(3, transport)
    assert met.names == NAMES
    assert any("Its samples are arrays, those of others table." in note for note in met.notes)


LIES: dict[str, Any] = {
    "no columns": {"columns": []},
    "no list": {"columns": "age"},
    "no name": {"columns": [{"kind": "number", "missing": False}]},
    "no kind": {"columns": [{"name": "age", "kind": "model", "missing": False}]},
    "no texts": {"columns": [column("age", "category", categories=[1])]},
    "no labels": {"labels": None},
    "mixed labels": {"labels": [1, "one"]},
    "labels to regress": {"task": "regress"},
    "no target": {"target": None},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_site_that_tells_nonsense_is_refused(lie: str) -> None:
    told = {"a": site(column("age")), "b": site(column("age")) | LIES[lie], "c": site(column("age"))}
    agreed, wrong = agree_on_tables(told)
    assert set(wrong) == {"b"}
    assert agreed["shape"] == [1]


def test_sites_whose_columns_leave_nothing_to_learn_from(tmp_path: Path) -> None:
    tables = {name: frame[["outcome"]].assign(country="NL") for name, frame in frames().items()}
    round = Round(tmp_path, written(tmp_path / "wards", tables))
    with pytest.raises(fk.BadInput, match="leave nothing to learn from"):
        round.met().federation()
    assert "  country  left out, constant" in round.said


def test_standardised_over_all_sites_is_refused(tmp_path: Path) -> None:
    with pytest.raises(fk.BadInput, match="Sites do not tell their means"):
        Table("a", tmp_path / "a.csv", standardise="all")


def test_a_site_refuses_an_agreement_that_is_not_its_own(round: Round) -> None:
    agreed, table = round.met().agreed, round.table("south")
    columns = agreed["columns"]
    cases: list[tuple[dict[str, Any], str]] = [
        ({"target": "age"}, "This site's target is 'outcome'"),
        ({"task": "regress"}, "This site's task is 'classify'"),
        ({"standardise": "all"}, "This site's standardise is 'site'"),
        ({"columns": "all"}, "does not say which columns"),
        ({"columns": [{"name": "age", "kind": "number"}]}, "does not say which columns"),
        ({"columns": columns[1:]}, "This site's column 'age' is number"),
        ({"columns": [columns[0] | {"kind": "category"}, *columns[1:]]}, "This site's column 'age' is number"),
        ({"labels": ["home"], "classes": 1}, "classes that the server does not know of"),
    ]
    for change, sentence in cases:
        with pytest.raises(fk.BadInput, match=sentence):
            table.federation(agreed | change)


def test_waiting_says_who_does_not_fit(tmp_path: Path) -> None:
    tables = frames()
    as_text(tables)
    with pytest.raises(Unfinished, match="west was not taken: Its column 'age' is text"):
        Round(tmp_path, written(tmp_path / "wards", tables)).met(3)
