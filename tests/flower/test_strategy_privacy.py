"""Strategies whose nodes clip and noise what they send, and what that has cost each of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from federation import NAMES, Party, mlp, short
from flwr.app import ArrayRecord
from flwr.serverapp.strategy import Result
from test_grid import grid_of
from test_strategy import model_of, own_grid, started

import fedkin as fk
from fedkin.flower import Strategy
from fedkin.privacy.accountant import epsilon

FIRST = {key: value.double() for key, value in mlp().state_dict().items()}
FEDAVG = short(fk.methods.fedavg(), 3)


def played(party: Party, method: Any = FEDAVG, **more: Any) -> Result:
    return Strategy(method, seed=4, timeout=1.0, **more).start(grid_of(party), ArrayRecord(FIRST), num_rounds=3)


def moved(result: Result) -> float:
    """How far the common model went."""
    return float(torch.cat([(v - FIRST[k]).flatten() for k, v in model_of(result.arrays).items()]).norm())


def test_updates_are_clipped_and_noised_at_the_nodes(party: Party, tmp_path: Path) -> None:
    plain = played(party.twin(tmp_path / "plain"))
    clipped = played(party.twin(tmp_path / "clipped"), dp="clip=1e-4,noise=1e-3")
    noisy = played(party.twin(tmp_path / "noisy"), dp="clip=1e-4,noise=1e3")
    assert 0 < moved(clipped) <= 3 * 1.02e-4, "three rounds, each no longer than clip but for the noise"
    assert moved(plain) > 0.01
    assert moved(noisy) > 0.1


def test_what_each_site_has_spent_is_in_the_result(party: Party) -> None:
    result = played(party, dp="clip=0.5,noise=0.8,delta=1e-6")
    for record in result.train_metrics_clientapp.values():
        assert record["fedkin-delta"] == 1e-6
        assert sum(record[f"fedkin-epsilon-{name}"] > 0 for name in NAMES) >= 3, "three of four train in round 1"
    last = result.train_metrics_clientapp[3]
    for name in NAMES:
        book = json.loads((party.folder / name / "releases.json").read_text())
        releases = {0.8: len(book)}
        assert last[f"fedkin-epsilon-{name}"] == pytest.approx(epsilon(releases, 1e-6))
        assert last[f"fedkin-epsilon-replaced-{name}"] == pytest.approx(epsilon(releases, 1e-6, replaced=True))


@pytest.mark.parametrize("losses", [False, True])
def test_scores_stay_at_the_nodes_unless_they_are_allowed(party: Party, losses: bool) -> None:
    result = played(party, dp="clip=0.5,noise=0.8" + (",losses=true" if losses else ""))
    assert bool(result.evaluate_metrics_clientapp) == losses


@pytest.mark.parametrize("name", ["fedmcsa", "fedacs", "scaffold", "ditto"])
def test_methods_with_models_of_their_own(party: Party, name: str) -> None:
    """Nobody is asked for the model that it holds; the site would refuse that."""
    result = played(party, short(fk.methods.METHODS[name](), 2), dp="clip=0.5,noise=0.1")
    assert not party.heard
    assert [record["fedkin-replied"] for record in result.train_metrics_clientapp.values()] == [2, 2, 2]


def test_nodes_with_an_app_of_their_own_add_no_noise() -> None:
    sentence = r"ClientApp of their own, which adds no noise; leave dp out, or make it with fedkin\.flower\.client"
    with pytest.raises(fk.BadInput, match=sentence):
        started(Strategy(fk.methods.fedavg(), dp="clip=0.5,noise=0.8"), own_grid())


def test_a_wish_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(fk.BadInput, match="does not say noise"):
        Strategy(fk.methods.fedavg(), dp="clip=0.5")
