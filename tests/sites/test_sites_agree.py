"""A run on sites that are rebuilt for every request is the run on the stacked engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from federation import Party, experiment, same_run, short, stacked

import fedkin as fk
from fedkin import sites

METHODS = {
    "fedavg": short(fk.methods.fedavg(), 3),
    "fedmcsa": short(fk.methods.fedmcsa(), 2),
    "fedacs": short(fk.methods.fedacs(p=0.25)),
    "adafl": short(fk.methods.adafl(start=0.5, end=1.0, levels=2)),
    "pfedre": short(fk.methods.pfedre()),
    "scaffold": short(fk.methods.scaffold(), 3),
    "ditto": short(fk.methods.ditto(), 3),
    "pfedme": short(fk.methods.pfedme(), 2),
    "perfedavg": short(fk.methods.perfedavg(), 3),
    "apfl": short(fk.methods.apfl(), 3),
    "fedmix": short(fk.methods.fedmix(), 3),
    "active": short(fk.methods.active()),
    "local": short(fk.methods.local()),
}


@pytest.mark.parametrize("name", METHODS)
def test_sites_are_stacked(party: Party, tmp_path: Path, name: str) -> None:
    method = METHODS[name]
    one = stacked(method, party.federation, tmp_path / "stacked")
    other = sites.run(party.met(), experiment(method), tmp_path / "remote")
    same_run(one, other, party.private())
    assert not party.heard
