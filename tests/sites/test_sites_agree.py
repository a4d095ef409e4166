"""A run on sites that are rebuilt for every request is the run on the stacked engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from federation import NAMES, SIX, SIZES, Party, experiment, same_run, short, stacked

import fedkin as fk
from fedkin import sites

METHODS = SIX | {
    "ditto": short(fk.methods.ditto(), 3),
    "pfedme": short(fk.methods.pfedme(), 2),
    "perfedavg": short(fk.methods.perfedavg(), 3),
    "apfl": short(fk.methods.apfl(), 3),
    "fedmix": short(fk.methods.fedmix(), 3),
    "active": short(fk.methods.active()),
    "local": short(fk.methods.local()),
    "pfedgraph": short(fk.methods.pfedgraph()),
    "feddwa": short(fk.methods.feddwa(k=2)),
    "pfedsim": short(fk.methods.pfedsim(), 3),
    "lgfedavg": short(fk.methods.lgfedavg(), 3),
    "cfl": short(fk.methods.cfl(still=50.0, apart=1e-6, first=0)),
    "fedper": short(fk.methods.fedper(), 3),
    "fedrep": short(fk.methods.fedrep(), 3),
    "fedbabu": short(fk.methods.fedbabu(), 3),
    "ifca": short(fk.methods.ifca(), 3),
    "fedfomo": short(fk.methods.fedfomo(models=2), 3),
    "fedala": short(fk.methods.fedala(), 3),
    "kin": short(fk.methods.kin(), 3),
    "fedavg_prior": short(fk.methods.fedavg_prior(), 3),
}


@pytest.mark.parametrize("name", METHODS)
def test_sites_are_stacked(party: Party, tmp_path: Path, name: str) -> None:
    method = METHODS[name]
    one = stacked(method, party.federation, tmp_path / "stacked")
    other = sites.run(party.met(), experiment(method), tmp_path / "remote")
    same_run(one, other, party.private())
    assert not party.heard


@pytest.mark.parametrize("name", ["fedavg", "fedmcsa"])
def test_rounds_that_are_not_scored(party: Party, tmp_path: Path, name: str) -> None:
    method, options = METHODS[name], {"rounds": 4, "evaluate_every": 2}
    one = stacked(method, party.federation, tmp_path / "stacked", **options)
    transport = party.here()
    other = sites.run(party.met(transport), experiment(method, **options), tmp_path / "remote")
    same_run(one, other, party.private())
    assert transport.exchanges == 5  # four rounds, and the scores of the last


def test_a_sample_of_sites_is_scored_and_validation_samples_are(federate: Any, party: Party, tmp_path: Path) -> None:
    federation = replace(federate(SIZES, test=(5, 2, 6, 3), shape=(6,), validation=2), irrelevant=None)
    party, options = replace(party, federation=federation), {"score_clients": 2}
    one = stacked(METHODS["fedmcsa"], federation, tmp_path / "stacked", **options)
    other = sites.run(party.met(), experiment(METHODS["fedmcsa"], **options), tmp_path / "remote")
    same_run(one, other, party.private())
    assert set(other.lines[-1]["accuracy"]) == {"recv", "post", "recv/validation", "post/validation"}


def test_numbers_to_regress_and_balanced_classes(party: Party, tmp_path: Path) -> None:
    balanced = {"class_weights": "balanced"}
    one = stacked(METHODS["ditto"], party.federation, tmp_path / "stacked", **balanced)
    other = sites.run(party.met(), experiment(METHODS["ditto"], **balanced), tmp_path / "remote")
    same_run(one, other, party.private())

    x = party.federation.x
    numbers = replace(party.federation, y=x[:, 0] + x[:, 1], classes=1, task="regress")
    there = replace(party, federation=numbers, folder=tmp_path / "regressing")
    module = {"model": "mlr", "metric": "r2"}
    begun = replace(experiment(METHODS["fedavg"]), **module)
    on_stacked = replace(begun, data=replace(numbers, clients=NAMES), chunk=4, threads=1)
    one = fk.run(on_stacked, tmp_path / "one", checkpoint_seconds=0.0)
    other = sites.run(there.met(), begun, tmp_path / "other")
    same_run(one, other, there.private())
    assert other.lines[-1]["metrics"]["r2"]["global"]["macro"] is not None
