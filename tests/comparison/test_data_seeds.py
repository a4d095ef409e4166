"""Every method and seed on several partitions of the data, pooled in one table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedkin as fk
from fedkin.comparison import conclusions
from fedkin.deploy.choice import choose
from fedkin.runs.run import Repetition


def data(**more: object) -> fk.Data:
    return fk.Data("digits", partition="dirichlet:0.3", clients=5, **more)  # type: ignore[arg-type]


def silent(_: str) -> None:
    pass


def test_every_method_has_the_same_partitions_and_folders_say_which(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    found = fk.compare(["fedavg"], data(seed=3), rounds=1, seeds=2, data_seeds=2, folder=folder, warn=silent)
    keys = [Repetition(seed, 0, data_seed) for data_seed in (3, 4) for seed in (0, 1)]
    assert list(found.runs["fedavg"]) == list(found.runs["local"]) == keys
    assert (folder / "fedavg" / "seed-1-data-seed-4" / "summary.json").exists()
    sizes = {key: tuple(run.about_clients["train"]) for key, run in found.runs["fedavg"].items()}
    assert sizes == {key: tuple(run.about_clients["train"]) for key, run in found.runs["local"].items()}
    assert len(set(sizes.values())) == 2
    for data_seed in (3, 4):
        own = fk.load_data(data(seed=data_seed)).train.sizes.tolist()
        assert list(sizes[Repetition(1, 0, data_seed)]) == own
    whole = found.methods["fedavg"]
    assert (whole["seeds"], whole["data_seeds"], whole["runs"]) == ([0, 1], [3, 4], 4)
    each = [run.summary["accuracy"]["post"]["macro"]["last"] for run in found.runs["fedavg"].values()]
    assert found.table().loc["fedavg", "post macro std"] == pytest.approx(np.std(each, ddof=1))
    read = fk.load_comparison(folder)
    assert read.table().equals(found.table())
    assert list(read.runs["local"]) == keys
    assert read.runs["local"][1].data_seed == 3
    loaded: Any = fk.load(folder / "fedavg")
    assert loaded.clients()["data_seed"].tolist() == [3] * 10 + [4] * 10


def test_one_seed_goes_along_with_that_of_the_data(tmp_path: Path) -> None:
    found = fk.compare(["fedavg"], data(), rounds=1, seeds=[7], data_seeds=3, folder=tmp_path / "out", warn=silent)
    assert list(found.runs["fedavg"]) == [Repetition(7 + k, 0, k) for k in range(3)]
    assert (tmp_path / "out" / "local" / "seed-9-data-seed-2").is_dir()


def test_no_client_gets_an_answer_and_that_is_told(tmp_path: Path) -> None:
    said: list[str] = []
    found = fk.compare(["fedavg"], data(), rounds=1, data_seeds=2, folder=tmp_path / "out", warn=said.append)
    assert any("no client gets an answer" in sentence for sentence in said)
    assert "sites" not in found.summary
    assert any("no client gets an answer" in sentence for sentence in found.summary["cautions"])
    assert set(found.verdicts["fedavg"]["by_data_seed"]) == {0, 1}
    assert found.gains().index.tolist()[4:6] == ["4 (data seed 0)", "0 (data seed 1)"]
    first = found.runs["fedavg"][0].last()["post"] - found.runs["local"][0].last()["post"]
    np.testing.assert_allclose(found.gains()["fedavg"][:5], first)
    page = found.report().read_text()
    assert "2 data seeds" in page
    assert "The clients are those of data seed 0." in page
    assert choose(tmp_path / "out").run.data_seed == 0


def test_data_seeds_with_splits_go_on_where_they_stopped_also_side_by_side(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    options: dict[str, Any] = {"rounds": 1, "splits": 2, "data_seeds": 2, "folder": folder, "warn": silent}
    whole = fk.compare(["fedavg"], data(), **options, jobs=2)
    late = folder / "fedavg" / "seed-1-split-1-data-seed-1"
    wanted = late.joinpath("models.safetensors").read_bytes()
    late.joinpath("summary.json").unlink()
    other = folder / "local" / "seed-1-split-1-data-seed-1" / "models.safetensors"
    before = other.stat().st_mtime_ns
    again = fk.compare(["fedavg"], data(), **options, resume=True)
    assert other.stat().st_mtime_ns == before
    assert late.joinpath("models.safetensors").read_bytes() == wanted
    assert again.table().drop(columns="seconds").equals(whole.table().drop(columns="seconds"))
    with pytest.raises(fk.BadInput, match="data seed 1"):
        fk.compare(["fedavg"], data(), **options | {"data_seeds": 3}, resume=True)


def test_each_seed_of_the_data_is_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of one partition learn together: however many agree, a partition is one number."""
    gains = {0: np.full((2, 30), 0.2), 1: np.full((2, 40), 0.21), 2: np.full((2, 20), 0.19)}
    monkeypatch.setattr(conclusions, "gains_over", lambda *_: gains)
    asked = [("fedavg", "local")]
    found = conclusions.verdicts_on({}, asked)["fedavg", "local"]
    assert (found["verdict"], found["seeds"], found["clients"]) == ("better", 3, 90)
    assert found["gain"] == pytest.approx(0.2)
    assert found["better"] == 1
    assert conclusions.by_data_seed(gains)["by_data_seed"] == pytest.approx({0: 0.2, 1: 0.21, 2: 0.19})
    gains[2] = np.full((2, 20), -0.05)
    found = conclusions.verdicts_on({}, asked)["fedavg", "local"]
    assert found["verdict"] == "no clear difference"
    assert found["worse"] == pytest.approx(20 / 90)


def test_numbers_of_clients_may_differ_between_seeds_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fk.compare(["fedavg"], data(), rounds=1, data_seeds=2, warn=silent)
    run = made.runs["local"][Repetition(1, 0, 1)]
    run.about_clients["names"].append("5")
    assert len(made.client_names()) == 11


def test_what_cannot_be_divided_anew_is_refused() -> None:
    given = fk.load_data(data())
    with pytest.raises(fk.BadInput, match="--data-seeds divides data anew"):
        fk.compare(["fedavg"], given, rounds=1, data_seeds=2)
    for wrong in (0, 1.5, True):
        with pytest.raises(fk.BadInput, match="--data-seeds"):
            fk.compare(["fedavg"], data(), data_seeds=wrong)  # type: ignore[arg-type]


def test_the_command_says_over_what_it_averages(fedkin: Any, tmp_path: Path) -> None:
    asked = ("--data", "digits", "--clients", "4", "--rounds", "1", "--data-seeds", "2")
    done = fedkin("compare", "fedavg", *asked, "--out", "out")
    assert "over 2 data seeds" in " ".join(done.out.split())
    assert "no client gets an answer" in " ".join(done.err.split())
    again = fedkin("compare", "--resume", "out", "--json")
    assert json.loads(again.out)["methods"]["fedavg"]["data_seeds"] == [0, 1]
    refused = fedkin("what-if", "out", "--without", "1")
    assert refused.code == 2
    assert "--data-seeds" in refused.err
    fedkin("compare", "fedavg", *asked, "--save", "both.toml")
    assert "over 2 data seeds" in " ".join(fedkin("compare", "both.toml", "--out", "other").out.split())
    alone = fedkin("run", "fedavg", *asked, "--out", "alone")
    assert alone.code == 0
