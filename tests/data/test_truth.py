"""Who is irrelevant is known to no part of a method but the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FunctionType, MethodType, ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

import fedkin as fk
from fedkin.data import Data, Federation, load
from fedkin.engines import Plain, Simulation


def reachable(root: object) -> Iterator[object]:
    """Everything that can be got at from here: fields, items, what functions are bound to or close over."""
    seen: set[int] = set()
    left = [root]
    alive = []  # so that no id is used twice
    while left:
        thing = left.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType | str | bytes | int | float | None):
            continue
        seen.add(id(thing))
        alive.append(thing)
        yield thing
        if isinstance(thing, dict):
            left += [*thing.keys(), *thing.values()]
        elif isinstance(thing, list | tuple | set | frozenset):
            left += thing
        elif isinstance(thing, MethodType):
            left += [thing.__self__, thing.__func__]
        elif isinstance(thing, FunctionType):
            left += [cell.cell_contents for cell in thing.__closure__ or ()]
            left += [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
        elif not isinstance(thing, Tensor):
            left += list(getattr(thing, "__dict__", {}).values())


def knows(root: object, truth: Tensor) -> bool:
    """Whether the federation, the truth or a copy of it can be reached."""
    return any(
        isinstance(thing, Federation)
        or (isinstance(thing, Tensor) and thing.shape == truth.shape and torch.equal(thing.double(), truth.double()))
        for thing in reachable(root)
    )


PROTOCOL = {
    "select": ("init", "__call__", "observe"),
    "train": ("slots", "prepare", "begin", "end"),  # engines look whether a part has a step of its own
    "keep": ("init", "__call__"),
    "collaborate": ("init", "send", "receive"),
}


def overheard(monkeypatch: pytest.MonkeyPatch, method: str, engine: str) -> tuple[list[object], Tensor]:
    """All that the parts of a method are handed during a run, and the truth."""
    federation = load(Data("digits", clients=8, server=40, irrelevant="flip:0.25"))
    assert federation.irrelevant is not None
    made = fk.methods.named(method)
    handed: list[object] = []
    calls: set[tuple[str, str]] = set()

    def listen(part: Any, role: str, name: str) -> None:
        original = getattr(type(part), name)

        def listening(self: object, *given: object) -> object:
            calls.add((role, name))
            handed.append((self, given))
            return original(self, *given)

        monkeypatch.setattr(type(part), name, listening)

    for role, names in PROTOCOL.items():
        for name in names:
            listen(getattr(made, role), role, name)
    fk.run(fk.Experiment(made, federation, rounds=2, engine=engine, evaluate_every=1))
    assert {("select", "__call__"), ("keep", "__call__"), ("collaborate", "send"), ("train", "begin")} <= calls
    return handed, federation.irrelevant


@pytest.mark.parametrize("method", ["fedprox", "fedmcsa", "sfedavg", "active", "pfedre", "multikrum"])
def test_no_part_can_reach_the_truth(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    assert not knows(*overheard(monkeypatch, method, "plain" if method == "fedprox" else "stacked"))


def test_the_oracle_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert knows(*overheard(monkeypatch, "oracle", "stacked"))


def test_the_search_for_the_truth_finds_it(start: Callable[..., Any]) -> None:
    """Else the test above would say nothing."""
    federation = load(Data("digits", clients=8, irrelevant="flip:0.25"))
    truth = federation.irrelevant
    assert truth is not None
    engine, task, _ = start(
        Plain, fk.methods.fedavg(), federation, torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    )
    assert isinstance(engine, Simulation)
    assert not knows(task, truth)
    assert knows(engine, truth)
    assert knows(replace(task, validation={"x": truth.clone()}), truth)
    assert knows(replace(task, loss=lambda model, batch: truth.sum()), truth)
    assert knows(replace(task, loss=engine.score), truth)
