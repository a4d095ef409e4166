"""A site's own configuration names its data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from wards import frames, written

import fedkin as fk
from fedkin.sites import Arrays, Table
from fedkin.sites.tables import from_config


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path, {"north": frames()["north"].assign(site="north")})["north"]


def test_all_keys_are_read_as_texts(path: Path) -> None:
    config = {
        "name": "north",
        "folder": "there",
        "data": str(path),
        "target-column": "outcome",
        "client-column": "site",
        "client": "north",
        "features": "age, ward",
        "drop": "ward",
        "test": "0.5",
        "validation": "0.25",
        "seed": "3",
        "standardise": "none",
        "task": "classify",
    }
    wanted = Table(
        "n",
        str(path),
        target_column="outcome",
        client_column="site",
        client="north",
        features=("age", "ward"),
        drop=("ward",),
        test=0.5,
        validation=0.25,
        seed=3,
        standardise="none",
        task="classify",
    )
    assert from_config("n", config) == wanted
    assert wanted.told()["sizes"] == {"train": 20, "validation": 20, "test": 40}
    assert from_config("n", {"data": str(path), "seed": 3}) == Table("n", str(path), seed=3)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "A site's configuration names its data; add data='table.csv'"),
        ({"data": "a.csv", "target_column": "y"}, "called 'target_column'; did you mean target-column"),
        ({"data": "a.csv", "xyz": "red"}, "no key of a site's configuration called 'xyz'; choose from client, "),
        ({"data": "a.csv", "test": "half"}, "In a site's configuration 'test' is a number, not 'half'"),
        ({"data": "a.csv", "seed": "0.5"}, "In a site's configuration 'seed' is a number, not '0.5'"),
        ({"data": "a.csv", "test": "2"}, "test"),
        ({"data": "a.csv", "task": "guess"}, "no task called 'guess'"),
        ({"data": "a.csv", "standardise": "all"}, "say 'site' or 'none'"),
    ],
)
def test_a_wrong_configuration_is_refused(config: dict[str, Any], words: str) -> None:
    with pytest.raises(fk.BadInput, match=words):
        from_config("a", config)


def test_any_kind_of_file_gives_the_same(path: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(path)
    frame.to_parquet(tmp_path / "n.parquet")
    frame.to_json(tmp_path / "n.jsonl", orient="records", lines=True)
    frame.to_excel(tmp_path / "n.xlsx", index=False)
    (tmp_path / "both").mkdir()
    frame[:30].to_csv(tmp_path / "both" / "1.csv", index=False)
    frame[30:].to_csv(tmp_path / "both" / "2.csv", index=False)

    def told(name: str) -> dict[str, Any]:
        return from_config("north", {"data": str(tmp_path / name), "target-column": "outcome"}).told()

    for name in ("n.parquet", "n.jsonl", "n.xlsx", "both"):
        assert told(name) == told("north.csv"), name


def test_npz_files(tmp_path: Path) -> None:
    gen = np.random.default_rng(0)
    labels = np.arange(40) % 2
    np.savez(tmp_path / "table.npz", x=gen.normal(size=(40, 3)), y=labels)
    np.savez(tmp_path / "images.npz", x=gen.normal(size=(40, 1, 4, 4)), y=labels)
    table = from_config("a", {"data": str(tmp_path / "table.npz")})
    assert [one["name"] for one in table.told()["columns"]] == ["x0", "x1", "x2"]
    images = from_config("a", {"data": str(tmp_path / "images.npz"), "test": "0.5"})
    assert isinstance(images, Arrays)
    told = images.told()
    assert (told["shape"], told["classes"], told["sizes"]["train"]) == ([1, 4, 4], 2, 20)
    with pytest.raises(fk.BadInput, match="no rows of a table"):
        Table("a", tmp_path / "images.npz").told()


def test_data_that_are_not_there_are_said_when_they_are_asked_for(tmp_path: Path) -> None:
    samples = from_config("a", {"data": str(tmp_path / "none.csv")})
    with pytest.raises(fk.BadInput, match="There is no file or folder"):
        samples.told()
