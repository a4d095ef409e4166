"""Nothing that a site tells has a value of its table in it, but for frequent categories and the names of classes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from federation import short
from wards import Round, written

import fedkin as fk
from fedkin import sites
from fedkin.sites import Answer, Failure, Here, Request

SECRET, DAY = "314159265", "-03-14T15:"  # one of them stands in every value that must not leave a site


def secret_table(size: int = 120) -> pd.DataFrame:
    """All its numbers, dates, names and rare categories have the secret in them."""
    rng = np.random.default_rng(3)
    number = np.arange(size)
    return pd.DataFrame(
        {
            "patient": [f"Mrs {SECRET} {one}" for one in number],
            "doctor": [f"Dr {SECRET} {one % 50}" for one in number],
            "case_id": [int(f"{SECRET}{one:03}") for one in rng.permutation(size)],
            "sodium": [float(f"{one % 7}.{SECRET}{one % 9}") for one in number],
            "same": float(f"7.{SECRET}"),
            "seen": [f"{1900 + one % 90}{DAY}{one % 60:02}" for one in number],
            "ward": [f"{SECRET} {one}" if one < 9 else ("eyes", "heart")[one % 2] for one in number],
            "remark": [f"see {SECRET} {one}" if one < 3 else None for one in number],
            "outcome": np.where(number % 3 == 0, "well", "ill"),
        }
    )


@dataclass
class Overheard(Here):
    """Writes down all that sites say, as text."""

    make: Any
    exchanges: int = 0
    heard: list[str] = field(default_factory=list)

    def answer(self, name: str, request: Request) -> Answer | Failure:
        found = super().answer(name, request)
        said = found.facts if isinstance(found, Answer) else found.reason
        self.heard.append(json.dumps(said))
        return found


def talk(round: Round) -> Overheard:
    return Overheard(round.here().make)


def test_no_value_is_told(tmp_path: Path) -> None:
    table = secret_table()
    round = Round(tmp_path, written(tmp_path / "t", {"a": table, "b": table.drop(columns=["patient", "sodium"])}))
    transport = talk(round)
    met = round.met(transport=transport)
    experiment = fk.Experiment(short(fk.methods.fedavg()), model="mlr", rounds=2)
    sites.run(met, experiment, tmp_path / "run")
    assert len(transport.heard) > 4
    words = "\n".join(transport.heard)
    assert "sodium" in words
    assert SECRET not in words
    assert DAY not in words
    columns = {one["name"]: one for one in round.table("a").told()["columns"]}
    assert columns["ward"]["categories"] == ["eyes", "heart"]
    assert columns["patient"]["categories"] == columns["doctor"]["categories"] == []
    assert {one["kind"] for one in columns.values()} == {"number", "date", "category"}
    assert not [
        path for path in (tmp_path / "run").rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()
    ]


def test_what_is_told_has_only_these_words_and_numbers(tmp_path: Path) -> None:
    """Whatever is told of a table beyond its names, kinds, categories and classes is true, false or a size."""
    told = Round(tmp_path, written(tmp_path, {"a": secret_table()})).table("a").told()
    allowed = {"table", "classify", "outcome", "site", "number", "date", "category", "eyes", "heart", "ill", "well"}
    allowed |= set(secret_table().columns)

    def leaves(value: Any) -> list[Any]:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        return [value] if inner is None else [leaf for one in inner for leaf in leaves(one)]

    found = leaves(told)
    assert {leaf for leaf in found if isinstance(leaf, str)} <= allowed
    assert sorted(leaf for leaf in found if isinstance(leaf, int | float) and not isinstance(leaf, bool)) == [0, 30, 90]


WRONG: dict[str, dict[str, Any]] = {
    "a text to regress": {"target_column": "patient", "task": "regress"},
    "a fraction to classify": {"target_column": "sodium", "task": "classify"},
    "too many texts": {"target_column": "patient"},
    "a client that is not there": {"client_column": "patient", "client": "Mr X"},
    "a column that is not there": {"features": ("patience",)},
    "a target that is not there": {"target_column": "outcomes"},
    "dates": {"target_column": "seen"},
}


@pytest.mark.parametrize("case", WRONG)
def test_a_refusal_quotes_no_value_to_the_server(tmp_path: Path, case: str) -> None:
    table = secret_table()
    good = {"b": table, "c": table}
    round = Round(tmp_path, written(tmp_path / "t", {"a": table} | good), {"a": WRONG[case]})
    transport = talk(round)
    met = round.met(2, transport)
    assert SECRET not in "\n".join(transport.heard)
    assert met.notes == (
        "Site a was not taken: It cannot read its own data; what is wrong with them is said at the site.",
    )
    assert round.heard[0].startswith("Site a refused what it was asked: ")
    assert any(word in round.heard[0] for word in ("column", "client"))


def test_a_file_without_names_of_columns(tmp_path: Path) -> None:
    """Its first row is taken for names, and the sentence that lists them stays at the site."""
    path = tmp_path / "a.csv"
    secret_table().to_csv(path, index=False, header=False)
    round = Round(tmp_path, {"a": path} | written(tmp_path / "t", {"b": secret_table(), "c": secret_table()}))
    transport = talk(round)
    assert round.met(2, transport).names == ("b", "c")
    assert SECRET not in "\n".join(transport.heard)
    assert any(SECRET in heard for heard in round.heard)
