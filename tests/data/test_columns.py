"""What a column of a table is taken for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedkin.data.columns import Column, decided
from fedkin.data.values import dates, numbers, texts


def column(values: Any, name: str = "c", sites: int = 1, asked: bool = False) -> Column:
    series = pd.Series(values, name=name)
    return decided(series, np.sort(np.arange(len(series)) % sites), asked)


@pytest.mark.parametrize(
    ("values", "kind", "said"),
    [
        ([1.5, 2.5, None, 3.5], "number", "number"),
        ([1, 2, 1, 2], "number", "number"),
        ([True, False, True, True], "number", "true or false, as 1 and 0"),
        (["true", "FALSE", None, "True"], "number", "true or false, as 1 and 0"),
        (["1.5", "?", "unknown", "2", "-", "NA", "", "3"], "number", "number"),
        (["yes", "no", "yes", "no"], "category", "categories"),
        (["a", "b", None, "a"], "category", "categories"),
        ([5, 5, 5], "left out", "left out, constant"),
        (["NL", "NL"], "left out", "left out, constant"),
        ([None, None], "left out", "left out, no values"),
        (["?", "NA", ""], "left out", "left out, no values"),
        ([np.inf, np.nan], "left out", "left out, no values"),
        (["a", "b", "c", "d"], "left out", "left out, unique"),
        (["2024-01-31", "2024-02-01", None], "date", "date"),
        (["31.12.2024", "01.02.2024"], "date", "date (day, month, year)"),
        (["12/31/2024", "01/13/2024"], "date", "date (month, day, year)"),
        (["31/12/2024 14:30", "01/02/2024 08:00"], "date", "date (day, month, year)"),
        (pd.to_datetime(["2024-01-01", "2024-05-05"]), "date", "date"),
    ],
)
def test_kinds(values: Any, kind: str, said: str) -> None:
    found = column(values)
    assert (found.kind, found.said) == (kind, said)


def test_values_that_are_no_numbers_are_told() -> None:
    found = column([*(str(i / 2) for i in range(30)), "<5", "<5"])
    assert found.kind == "number"
    assert found.note == "2 such as '<5' count as missing"
    assert column([*"123", "low", "high"]).kind != "number"


def test_decimal_commas_are_told() -> None:
    found = column([f"{i % 7},5" for i in range(30)])
    assert found.kind == "category"
    assert "decimal commas" in found.note
    assert "decimal commas" in column([f"{i},5" for i in range(30)]).note
    assert "commas" not in column(["1", "2"] * 9).note


class TestIds:
    def test_whole_numbers_are_an_id_by_name_or_if_consecutive(self) -> None:
        far = np.random.default_rng(0).choice(10**6, 60, replace=False)
        for name in ("patient_id", "id", "PatientID", "patientId", "case nr", "Unnamed: 0", "MRN"):
            assert column(far, name).said == "left out, unique"
        assert column(far, "cholesterol").kind == "number"
        assert column(far, "width").kind == "number"
        assert column(np.arange(100)[::2], "row").said == "left out, unique"  # half of a table's row numbers

    def test_unique_ages_of_a_small_table_stay(self) -> None:
        assert column(np.arange(20, 69), "age").kind == "number"
        assert column(np.arange(20, 69), "id").kind == "number"  # not told from ages

    def test_an_id_may_begin_anew_at_each_site(self) -> None:
        assert column([*range(30), *range(30)], "n", sites=2).said == "left out, unique"
        assert column([*range(30), *range(29), 3], "n", sites=2).kind == "number"

    def test_an_id_that_is_asked_for_stays(self) -> None:
        assert column(np.arange(100), "id", asked=True).kind == "number"

    def test_measurements_are_no_ids(self) -> None:
        assert column(np.linspace(0, 1, 100), "id").kind == "number"

    def test_text_with_nearly_as_many_values_as_rows(self) -> None:
        notes = [f"note {i}" for i in range(60)] + ["as before"] * 20
        assert column(notes).said == "left out, text with 61 values in 80 rows"
        assert column(notes + ["as before"] * 60).kind == "category"


class TestValues:
    def test_text(self) -> None:
        mixed = pd.Series([1.0, 2, "a ", None, np.nan, "?", pd.NaT, [3]], dtype=object)
        assert texts(mixed).tolist() == ["1", "2", "a", None, None, None, None, "[3]"]
        assert texts(pd.Series([True, False])).tolist() == ["True", "False"]

    def test_numbers(self) -> None:
        found = numbers(pd.Series(["1", " 2.5", "true", "x", None, "inf", "1e3"], dtype=object))
        np.testing.assert_array_equal(found, [1, 2.5, 1, np.nan, np.nan, np.nan, 1000])
        nullable = pd.Series([1, None], dtype="Int64")
        np.testing.assert_array_equal(numbers(nullable), [1, np.nan])

    def test_dates(self) -> None:
        found = dates(pd.Series(["1970-01-02", "1970-01-01T06:00:00+06:00", "no date", None]))
        np.testing.assert_array_equal(found, [1, 0, np.nan, np.nan])
        np.testing.assert_array_equal(dates(pd.Series(["02.01.1970"]), "%d.%m.%Y"), [1])
