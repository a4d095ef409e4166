"""Pooled as a method beside others: what it reaches, what it costs, who is told to take part."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fedkin as fk
from fedkin.deploy.choice import choose
from fedkin.train import Pooled

IID = fk.Data("digits", partition="iid", clients=10)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> fk.Comparison:
    folder = tmp_path_factory.mktemp("pooled") / "out"
    return fk.compare(["fedavg", "pooled"], IID, rounds=8, folder=folder, warn=lambda _: None)


def test_on_iid_data_it_reaches_at_least_what_fedavg_reaches(compared: fk.Comparison) -> None:
    theirs, pooled = (compared.methods[name]["accuracy"]["global"]["micro"]["last"] for name in ("fedavg", "pooled"))
    assert pooled >= theirs
    assert pooled > 0.9


def test_it_is_judged_by_the_common_model_and_no_site_is_told_to_join_it(compared: fk.Comparison) -> None:
    run = compared.runs["pooled"][0]
    assert (run.judged, run.pools, compared.runs["local"][0].pools) == ("global", True, False)
    gained = run.last()["global"] - compared.runs["local"][0].last()["post"]
    np.testing.assert_allclose(compared.gains()["pooled"], gained)
    assert "pooled" in compared.verdicts
    sites = compared.summary["sites"]["sites"]
    assert {name for site in sites for name in site["methods"]} == {"fedavg"}
    assert choose(compared.folder).run.method == "fedavg"


def test_alone_with_local_it_has_a_verdict_and_sites_have_no_answer() -> None:
    found = fk.compare(["pooled"], IID, rounds=2, warn=lambda _: None)
    assert list(found.verdicts) == ["pooled"]
    assert "sites" not in found.summary


def test_the_samples_are_sent_once_and_no_model(compared: fk.Comparison) -> None:
    run = compared.runs["pooled"][0]
    samples, parameters = sum(run.about_clients["train"]), run.experiment["resolved"]["parameters"]
    cost = run.summary["cost"]
    assert cost["uploads"] == pytest.approx(samples * (64 + 1) / parameters)
    assert (cost["downloads"], cost["bytes_down"]) == (0, 0)
    assert cost["bytes_up"] == samples * (64 * 4 + 8)


def test_known_irrelevant_clients_are_in_the_pool() -> None:
    data = replace(IID, irrelevant="flip:0.5")
    clean, foul = (
        fk.run(fk.Experiment(fk.methods.pooled(), each, "mlr", 4)).summary["accuracy"]["global"]["micro"]["last"]
        for each in (IID, data)
    )
    assert foul < clean - 0.05


@pytest.mark.parametrize("engine", ["stacked", "plain"])
def test_it_resumes_exactly(tmp_path: Path, engine: str) -> None:
    short = fk.Experiment(fk.methods.pooled(), IID, "mlr", 2, engine=engine)
    whole = replace(short, rounds=4)
    fk.run(short, tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    resumed = fk.run(whole, tmp_path / "b", resume=True)
    never = fk.run(whole)
    for name, value in never.models["global"].items():
        assert torch.equal(value, resumed.models["global"][name])


def test_balanced_classes_are_those_of_the_pool(federate: Any, start: Any) -> None:
    from small import network

    from fedkin.engines import Plain

    federation = federate((3, 30), 2)
    engine, *_ = start(Plain, fk.methods.pooled(), federation, network(), balanced=True)
    together = engine.batching.together(torch.arange(2))
    counts = np.bincount(federation.y[federation.train.rows].numpy(), minlength=3)
    wanted = torch.from_numpy(33 / (3 * counts)).to(together.dtype)
    torch.testing.assert_close(together.class_weights[0], wanted)


def test_it_needs_a_common_model() -> None:
    with pytest.raises(fk.BadInput, match="Pooled trains one common model, and ComponentAttention has none"):
        replace(fk.methods.fedmcsa(), train=Pooled())


def test_the_command_says_that_it_may_be_added(fedkin: Any) -> None:
    asked = ("--data", "digits", "--clients", "4", "--rounds", "1")
    said = " ".join(fedkin("compare", "fedavg", *asked, "--out", "without").out.split())
    assert "privacy forbids: add pooled" in said
    said = " ".join(fedkin("compare", "fedavg", "pooled", *asked, "--out", "with").out.split())
    assert "add pooled" not in said
    assert "no client is advised to take part" in said
    assert "what privacy forbids" in " ".join(fedkin("compare", "--help").out.split())
    assert "everybody's samples" in fedkin("methods", "pooled").out
