"""Every method and seed on several divisions into train and test."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from small import forget_checksums

import fedkin as fk
from fedkin.runs.run import Repetition


def data(**more: object) -> fk.Data:
    return fk.Data("digits", clients=5, **more)  # type: ignore[arg-type]


def test_a_split_divides_the_same_samples_otherwise() -> None:
    first, second = (fk.load_data(data(split=number)) for number in (0, 1))
    assert torch.equal(first.x, second.x)
    for client in range(5):
        own = [torch.cat([f.train[client], f.test[client]]).sort().values for f in (first, second)]
        assert torch.equal(*own)
        assert not torch.equal(first.test[client].sort().values, second.test[client].sort().values)
    again = fk.load_data(data(split=1))
    assert torch.equal(again.train.rows, second.train.rows)


def test_split_0_is_the_division_that_there_always_was() -> None:
    found = fk.load_data(data())
    assert found.test.rows[:6].tolist() == fk.load_data(data(split=0)).test.rows[:6].tolist()
    assert found.train.sizes.tolist() == fk.load_data(data(split=3)).train.sizes.tolist()


def test_sites_left_out_change_nothing_for_the_others() -> None:
    whole, less = fk.load_data(data()), fk.load_data(data(without=["3", "1"]))
    assert less.clients == ("0", "2", "4")
    for client, name in enumerate(less.clients):
        assert torch.equal(less.test[client], whole.test[int(name)])
    with pytest.raises(fk.BadInput, match="client"):
        fk.load_data(data(without=("7",)))
    with pytest.raises(fk.BadInput, match="list of clients"):
        data(without="3")
    with pytest.raises(fk.BadInput, match="one split"):
        fk.Data("mnist", holdout="official", split=1)


def test_every_method_has_the_same_splits_and_folders_say_which(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    found = fk.compare(["fedavg"], data(), rounds=1, seeds=2, splits=2, folder=folder, warn=lambda _: None)
    keys = [Repetition(seed, split) for split in (0, 1) for seed in (0, 1)]
    assert list(found.runs["fedavg"]) == list(found.runs["local"]) == keys
    assert (folder / "fedavg" / "seed-1-split-0" / "summary.json").exists()
    for key in keys:
        said, alone = (found.runs[name][key].predictions for name in ("fedavg", "local"))
        assert said is not None
        assert alone is not None
        np.testing.assert_array_equal(said["rows"], alone["rows"])
    assert found.runs["fedavg"][1].split == 0
    assert found.methods["fedavg"]["seeds"] == [0, 1]
    assert found.methods["fedavg"]["splits"] == [0, 1]
    each = [run.summary["accuracy"]["post"]["macro"]["last"] for run in found.runs["fedavg"].values()]
    assert found.table().loc["fedavg", "post macro std"] == pytest.approx(np.std(each, ddof=1))
    read = fk.load_comparison(folder)
    assert read.table().equals(found.table())
    assert list(read.runs["local"]) == keys


def test_splits_go_on_where_they_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    options = {"rounds": 1, "splits": 2, "folder": folder}
    fk.compare(["fedavg"], data(), **options, warn=lambda _: None)  # type: ignore[arg-type]
    (folder / "fedavg" / "seed-0-split-1" / "summary.json").unlink()
    before = (folder / "local" / "seed-0-split-1" / "models.safetensors").stat().st_mtime_ns
    fk.compare(["fedavg"], data(), **options, resume=True, warn=lambda _: None)  # type: ignore[arg-type]
    assert (folder / "local" / "seed-0-split-1" / "models.safetensors").stat().st_mtime_ns == before
    with pytest.raises(fk.BadInput, match="split 1"):
        fk.compare(["fedavg"], data(), rounds=1, splits=3, folder=folder, resume=True)


def test_one_split_has_the_folders_of_before(tmp_path: Path) -> None:
    fk.compare(["fedavg"], data(), rounds=1, folder=tmp_path / "out", warn=lambda _: None)
    assert (tmp_path / "out" / "fedavg" / "seed-0" / "summary.json").exists()


def test_folders_of_before_are_read(tmp_path: Path) -> None:
    """Without splits, budgets and answers in plan, experiments and summaries, as older versions wrote them."""
    folder = tmp_path / "out"
    made = fk.compare(["fedavg"], data(), rounds=1, folder=folder, warn=lambda _: None)
    forget_checksums(folder)
    plan = json.loads((folder / "plan.json").read_text())
    del plan["against"]
    for arm in plan["arms"]:
        del arm["data"]["split"], arm["data"]["without"]
    (folder / "plan.json").write_text(json.dumps(plan))
    summary = json.loads((folder / "summary.json").read_text())
    del summary["sites"], summary["against_local"]["fedavg"]["against"]
    for name in ("local", "fedavg"):
        del summary["methods"][name]["splits"]
    (folder / "summary.json").write_text(json.dumps(summary))
    for path in folder.glob("*/seed-0/*.json"):
        value = json.loads(path.read_text())
        if path.name == "experiment.json":
            del value["data"]["split"], value["data"]["without"], value["resolved"]["judged"]
        elif path.name == "summary.json":
            del value["splits"]
        path.write_text(json.dumps(value))
    read = fk.load_comparison(folder)
    assert read.gains().equals(made.gains())
    assert read.sites().empty
    assert "fedavg" in str(read)
    assert "Every client's gain" in read.report().read_text()
    more = fk.compare(["fedavg"], data(), rounds=2, folder=folder, resume=True, warn=lambda _: None)
    assert not more.sites().empty


def test_own_tensors_are_divided_again_into_parts_of_the_same_sizes() -> None:
    gen = torch.Generator().manual_seed(0)
    clients = {f"ward {i}": (torch.randn(20, 3, generator=gen), torch.arange(20) % 2) for i in range(4)}
    given = fk.from_clients(clients)
    found = fk.compare(["fedavg"], given, rounds=1, splits=2, warn=lambda _: None)
    rows = []
    for key in (Repetition(0, 0), Repetition(0, 1)):
        said = found.runs["fedavg"][key].predictions
        assert said is not None
        rows.append(said["rows"].tolist())
    assert len(rows[0]) == len(rows[1])
    assert rows[0] != rows[1]


def test_bad_numbers_of_splits_are_one_sentence() -> None:
    for wrong in (0, 1.5, True):
        with pytest.raises(fk.BadInput, match="--splits"):
            fk.compare(["fedavg"], data(), splits=wrong)  # type: ignore[arg-type]


def test_splits_need_the_description_of_what_was_made_after_the_division() -> None:
    table = fk.load_data(fk.Data("heart"))
    flipped = fk.load_data(fk.Data("digits", clients=4, irrelevant="flip:0.3"))
    pair = (np.zeros((4, 2), dtype=np.float32), np.array([0, 1, 0, 1]))
    given = fk.from_clients({"a": {"train": pair, "test": pair}, "b": {"train": pair, "test": pair}})
    for federation, words in ((table, "need an fk.Data"), (flipped, "need an fk.Data"), (given, "one split only")):
        with pytest.raises(fk.BadInput, match=words):
            fk.compare(["fedavg"], federation, rounds=1, splits=2)


def test_a_metric_that_is_not_defined_on_some_split_is_left_out() -> None:
    gen = np.random.default_rng(0)
    clients = {name: (gen.normal(size=(8, 3)), np.array([0] * 7 + [1])) for name in "ab"}
    found = fk.compare(["fedavg"], fk.from_clients(clients), rounds=2, splits=6, metric="auc", warn=lambda _: None)
    assert len(found.sites()) == 2


def test_an_infinite_loss_on_some_split_is_no_crash() -> None:
    gen = np.random.default_rng(0)
    clients = {f"site {i}": (x := gen.normal(size=(40, 3)), x @ [1.0, 2.0, 3.0] + 0.1) for i in range(4)}
    clients["site 0"][0][7] *= 3e4
    found = fk.compare(["fedavg"], fk.from_clients(clients), rounds=10, splits=8, warn=lambda _: None)
    assert found.sites()["gain"].map(np.isfinite).all()
