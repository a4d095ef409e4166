"""Own data that could be read in a wrong way are refused in a sentence: no sample, client or label is lost unsaid."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fedkin as fk

DRAW = np.random.default_rng(0)
X, Y = DRAW.normal(size=(40, 3)), np.arange(40) % 2
SITES = np.array(["north", "south"] * 20)
TABLE = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": Y, "client": SITES})


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder, in which a warning of a library is an error."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def refused(sentence: str, name: str, **how: Any) -> None:
    with pytest.raises(fk.BadInput, match=sentence):
        fk.load_data(fk.Data(name, **how))


def test_a_number_and_a_text_do_not_become_one_client() -> None:
    clients: Any = {1: (X, Y), "1": (X, Y)}
    with pytest.raises(fk.BadInput, match="Two clients are called 1"):
        fk.from_clients(clients)


def test_two_files_do_not_become_one_client() -> None:
    Path("sites").mkdir()
    TABLE.drop(columns="client").to_csv("sites/a.csv", index=False)
    TABLE.drop(columns="client").to_parquet("sites/a.parquet")
    refused("would be one client", "./sites")


@pytest.mark.parametrize("labels", [np.where(Y, 1e300, 2e300), Y * 2.0**60, Y.astype(np.uint64) * 2**63])
def test_labels_that_are_not_exact_are_no_classes(labels: np.ndarray) -> None:
    with pytest.raises(fk.BadInput, match=r"too large|inexact"):
        fk.from_clients({"north": (X, labels)})


@pytest.mark.parametrize("large", [1e300, 1e38])
def test_features_that_fit_no_float_are_refused(large: float) -> None:
    with pytest.raises(fk.BadInput, match="too large to learn from"):
        fk.from_clients({"north": (X * large, Y)})
    TABLE.assign(a=TABLE["a"] * large).to_csv("large.csv", index=False)
    refused("The column 'a' has the number .* too large", "./large.csv")
    TABLE.assign(a=(TABLE["a"] * large).astype(str)).to_parquet("large.parquet")
    refused("The column 'a' has the number .* too large", "./large.parquet")
    np.savez("large.npz", x=np.ones((40, 2, 2)) * large, y=Y, client=SITES)
    refused("'x' of large.npz has the number .* too large", "./large.npz")


def test_a_target_that_fits_no_float_is_refused() -> None:
    with pytest.raises(fk.BadInput, match="too large to learn from"):
        fk.from_clients({"north": (X, X[:, 0] * 1e300)}, task="regress")


def test_a_second_label_is_no_feature() -> None:
    rows = [f"{x[0]},{y},{y},{site}" for x, y, site in zip(X, Y, SITES, strict=True)]
    Path("twice.csv").write_text("\n".join(["a,label, label,client", *rows]) + "\n")
    refused("two columns called label", "./twice.csv")
    Path("twice.tsv").write_text("\n".join(["\na,label,label,client", *rows]).replace(",", "\t") + "\n")
    refused("two columns called label", "./twice.tsv")
    Path("twice.jsonl").write_text('{"a": 1, "label": 0, "label": 1, "client": "north"}\n' * 9)
    refused("two columns called label", "./twice.jsonl")


def test_a_second_label_in_a_sheet_is_no_feature() -> None:
    pytest.importorskip("openpyxl")
    TABLE.rename(columns={"b": "label"}).to_excel("twice.xlsx", index=False)
    refused("two columns called label", "./twice.xlsx")


def test_columns_without_a_name_may_be_several() -> None:
    Path("index.csv").write_text(
        ",,a,label,client\n" + "".join(f"0,1,{i % 7},{i % 2},{'uv'[i % 2]}\n" for i in range(40))
    )
    assert fk.load_data(fk.Data("./index.csv")).n == 2


@pytest.mark.parametrize("missing", [np.array([np.nan, 2.0] * 20), np.array(["", "south"] * 20)])
def test_a_sample_without_a_client_is_refused(missing: np.ndarray) -> None:
    np.savez("missing.npz", x=X, y=Y, client=missing)
    refused("rows without a client", "./missing.npz")


def test_one_column_does_not_say_two_things() -> None:
    TABLE.to_csv("table.csv", index=False)
    refused("cannot say both", "./table.csv", client="label", target="label")


ODD = {
    "scalar": {"x": np.float64(3), "y": np.float64(1)},
    "complex features": {"x": X + 0j, "y": Y},
    "complex labels": {"x": X, "y": Y + 0j},
    "durations": {"x": X, "y": Y.astype("m8[s]")},
    "records": {"x": X, "y": np.array([(1, 2)] * 40, dtype=[("a", "i4"), ("b", "i4")])},
    "dates": {"x": X, "y": np.array(["2020-01-01", "2020-01-03"] * 20, dtype="M8[D]")},
    "nothing": {"x": X[:0], "y": Y[:0]},
    "a label too many": {"x": X, "y": np.append(Y, 1)},
    "two labels a sample": {"x": X, "y": Y[:, None]},
}


@pytest.mark.parametrize("name", ODD)
def test_odd_arrays_are_one_sentence(name: str) -> None:
    np.savez("odd.npz", **ODD[name])
    refused("odd.npz", "./odd.npz", partition="iid", clients=2)


def test_deep_json_is_one_sentence() -> None:
    Path("deep.jsonl").write_text(json.dumps({"label": 1}) + "\n" + '{"a":' * 100_000 + "1" + "}" * 100_000 + "\n")
    refused("deep.jsonl could not be read", "./deep.jsonl")
