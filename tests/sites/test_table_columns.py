"""What is told of a column, and what sites make of such columns together."""

from __future__ import annotations

from typing import Any

import pandas as pd
from wards import Told, column, site

from fedkin.sites.columns import agreed_columns, features_of, told_column, union


def test_columns_are_in_the_order_in_which_they_were_told_first() -> None:
    told = {"a": site(column("z"), column("b")), "b": site(column("c"), column("b"), column("a"))}
    assert [one["name"] for one in agreed_columns(told, "site")] == ["z", "b", "c", "a"]
    features = [one["column"] for one in features_of(agreed_columns(told, "site"), {})]
    assert features == ["z", "z", "b", "c", "c", "a", "a"]


def words(*sites: Told, name: str = "age", standardise: str = "site", train: int = 100) -> str:
    told = {str(number): site(one, train=train) for number, one in enumerate(sites)}
    (found,) = (one for one in agreed_columns(told, standardise) if one["name"] == name)
    assert bool(features_of([found], {})) == (not found["said"].startswith("left out"))
    return str(found["said"])


def test_columns_that_are_left_out() -> None:
    empty = {"name": "age", "kind": "empty", "missing": True}
    still, one = column("age", varies=False), column("age", "category", categories=["x"])
    rare = column("age", "category", categories=[], other=True)
    assert words(empty, empty) == "left out, no values"
    assert words(still, still) == "left out, constant at each site"
    assert words(still, column("age")) == "number, standardised"
    assert words(still, empty) == "number, standardised; missing at 1, filled with the median"
    assert words(one, one) == "left out, constant"
    assert words(one, column("age", "category", categories=["y"])) == "2 categories: x, y"
    assert words(rare, rare) == "left out, none of its values is frequent at a site"
    assert words(rare, one) == "1 category: x, rare ones together as other"
    assert words(column("age"), standardise="none") == "number"


def test_ids_are_left_out() -> None:
    def ids(name: str, dense: bool = True, unique: bool = True, train: int = 30) -> str:
        return words(*[column(name, unique=unique, dense=dense)] * 2, name=name, train=train)

    assert ids("patient_id", dense=False) == "left out, unique"
    assert ids("run") == "left out, unique"
    assert ids("run", dense=False) == "number, standardised"
    assert ids("patient_id", unique=False) == "number, standardised"
    assert ids("patient_id", train=20) == "number, standardised"


def test_of_too_many_categories_those_of_most_sites_stay() -> None:
    told = {
        "a": column("x", "category", categories=[f"c{number:02}" for number in range(40)]),
        "b": column("x", "category", categories=[f"c{number:02}" for number in range(30, 70)]),
    }
    named, other = union(told)
    assert (len(named), other) == (49, True)
    assert named == sorted(named)
    assert {f"c{number}" for number in range(30, 40)} <= set(named)
    assert union({"a": told["a"]}) == (told["a"]["categories"], False)


def test_what_is_told_of_a_column() -> None:
    def told(values: list[Any], asked: bool = False) -> Told:
        found = told_column(pd.Series(values, name="v"), asked)
        assert found.pop("name") == "v"
        return found

    number = {"kind": "number", "missing": False, "varies": True, "unique": False, "dense": False}
    assert told([1.5, 2.0, 1.5]) == number
    assert told([3, 3, None]) == number | {"varies": False, "missing": True}
    assert told(list(range(7, 40))) == number | {"unique": True, "dense": True}
    assert told(list(range(7, 40)), asked=True) == number
    assert told(["2024-01-31", "2024-02-01"]) == number | {"kind": "date"}
    assert told([None, None]) == {"kind": "empty", "missing": True}
    assert told([float("nan")] * 3) == {"kind": "empty", "missing": True}
    category = {"kind": "category", "missing": False, "other": False}
    assert told(["a", "b"] * 3) == category | {"categories": ["a", "b"]}
    assert told(["a"] * 6) == category | {"categories": ["a"]}
    assert told(["a"] * 6 + ["b", None]) == category | {"categories": ["a"], "other": True, "missing": True}
    assert told(["a"] * 400 + ["b"] * 3) == category | {"categories": ["a"], "other": True}
    assert told([f"name {number}" for number in range(9)]) == category | {"categories": [], "other": True}
    names = [f"name {number // 2}" for number in range(60)] + [f"other {number}" for number in range(60)]
    assert told(names) == category | {"categories": [], "other": True}
