"""What a site refuses to do for a server, each in a sentence of its own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from faults import Faulty
from federation import Party, experiment, short

import fedkin as fk
from fedkin import sites
from fedkin.runs.part_json import to_json
from fedkin.sites import Request
from fedkin.train import SGD

DITTO = short(fk.methods.ditto(), 4)


@dataclass(frozen=True)
class Own(SGD):
    """A train part of a module that is not fedkin's."""


@pytest.fixture
def asked(party: Party, tmp_path: Path) -> Request:
    """What site c is asked in round 2."""
    transport = party.here(Faulty)
    sites.run(party.met(transport), experiment(DITTO), tmp_path / "run")
    assert isinstance(transport, Faulty)
    return transport.asked[1]["c"]


def in_run(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda value: value["run"].update(changes)


def wrong_model(value: dict[str, Any]) -> None:
    value["train"]["sent"]["model"] = {"weight": torch.zeros(2)}


POOLED = to_json(fk.methods.pooled().train)
EVIL = to_json(SGD()) | {"is": "os:system"}
INSIDE = to_json(SGD()) | {"eta": {"is": "subprocess:Popen"}}
CASES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "a part of a strange module": (in_run(train=EVIL), "does not allow parts of the module 'os'"),
    "a part of one inside another": (in_run(train=INSIDE), "does not allow parts of the module 'subprocess'"),
    "a part that does not train": (in_run(train={"is": "Everyone"}), "A site runs train parts, and Everyone is none"),
    "samples to be pooled": (in_run(train=POOLED), "samples do not leave a site"),
    "a model by its path": (in_run(model="os.path:join"), "by fedkin's own names only, and 'os.path:join' is none"),
    "a model that is no text": (in_run(model=["mlr"]), "is no name"),
    "a path for a run": (in_run(id="../../../etc"), "paths are not taken from a server"),
    "an absolute path": (in_run(id="/etc/passwd" + "a" * 21), "paths are not taken from a server"),
    "a round below zero": (lambda value: value.update(held=-1), "A round is a whole number from 0 on"),
    "a round that it never played": (lambda value: value.update(held=9), "Nothing is left of round 9"),
    "a model of other shapes": (wrong_model, "The model that the server sent has weight instead of"),
    "numbers of another kind": (in_run(dtype="complex"), "Numbers are float32 or float64 here"),
    "samples of another shape": (in_run(agreed={"shape": [3, 3]}), "This site's samples have the shape"),
    "its personal model": (lambda value: value.update(show="personal"), "does not show 'personal'"),
    "nothing that makes sense": (lambda value: value["train"].pop("round"), "does not say what it must"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_site_refuses(party: Party, asked: Request, case: str) -> None:
    change, words = CASES[case]
    site = party.site("c")
    value = copy.deepcopy(asked.value())
    assert "refused" not in site.answer(Request.of("1", "work", value)).value()
    change(value)
    answer = party.site("c").answer(Request.of("2", "work", value))
    assert answer.to == "2"
    assert words in answer.value()["refused"]
    assert "upload" not in answer.value()
    assert any(words in heard for heard in party.heard)


def test_a_verb_that_no_site_knows(party: Party) -> None:
    assert "does not know how to do 'delete'" in party.site("c").answer(Request("1", "delete")).value()["refused"]


def test_a_module_that_the_site_allows(party: Party, tmp_path: Path) -> None:
    method = replace(short(fk.methods.fedavg(), 4), train=Own(steps=2, batch=4))
    with pytest.raises(fk.BadInput, match=r"Every site that was asked refused\. a: This site does not allow"):
        sites.run(party.met(), experiment(method, score=("global",)), tmp_path / "refused")
    party.options = {"modules": [Own.__module__]}
    run = sites.run(party.met(), experiment(method), tmp_path / "run")
    assert len(run.lines) == 3


def test_a_model_that_the_app_was_not_made_with(party: Party, tmp_path: Path) -> None:
    party.options = {"model": None}
    with pytest.raises(fk.BadInput, match="made without a model"):
        sites.run(party.met(), experiment(DITTO), tmp_path / "run")
    named = sites.run(party.met(), replace(experiment(DITTO), model="mlr"), tmp_path / "named")
    assert len(named.lines) == 3


@pytest.mark.parametrize("option", ["heterogeneity", "gradient_norm"])
def test_what_needs_all_samples_is_refused(party: Party, option: str) -> None:
    with pytest.raises(fk.BadInput, match="does not leave a site"):
        sites.run(party.met(), experiment(DITTO, **{option: True}))


def test_pooling_is_refused(party: Party) -> None:
    with pytest.raises(fk.BadInput, match="samples do not leave a site"):
        sites.run(party.met(), experiment(fk.methods.pooled()))
