"""Local: one for each budget, the same in every order of arguments."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

import fedkin as fk
from fedkin.comparison.plan import with_local
from fedkin.methods import named
from fedkin.methods.local import alone
from fedkin.runs.verdict import compared_with, is_local, uneven

NAMES = ("fedavg", "fedmcsa", "fedacs", "pfedre")


def locals_of(names: tuple[str, ...]) -> dict[str, fk.Method]:
    return {method.name: method for method in with_local([named(n) for n in names]) if is_local(method.name)}


def test_local_is_the_same_in_every_order() -> None:
    expected = locals_of(NAMES)
    assert next(iter(expected)) == "local"
    for order in permutations((*NAMES, "local")):
        assert locals_of(order) == expected


def test_every_budget_has_a_local_that_is_named_by_what_differs() -> None:
    methods = with_local([named(name) for name in NAMES])
    found = compared_with(methods)
    by_name = {method.name: method for method in methods}
    for name, local in found.items():
        assert by_name[local].train == alone(by_name[name]).train
    assert found["fedavg"] == found["fedmcsa"] == "local", "the budget that most methods have"
    assert found["pfedre"] == "local@batch=32@epochs=1@eta=0.05"
    assert uneven(methods) == []


def test_a_changed_local_stays_and_the_others_get_their_own() -> None:
    mine = replace(fk.methods.local(), train=replace(fk.methods.local().train, eta=0.5))
    methods = with_local([mine, fk.methods.fedavg()])
    assert methods[0] == mine
    assert compared_with(methods)["fedavg"] == "local@eta=0.02"


def test_one_budget_has_one_local() -> None:
    assert [method.name for method in with_local([named("fedprox"), named("fedavg")])] == ["local", "fedprox", "fedavg"]
    assert [method.name for method in with_local([named("local")])] == ["local"]


def test_gains_are_over_the_local_of_the_same_budget() -> None:
    data = fk.Data("digits", clients=4)
    found = fk.compare(["fedavg", "fedacs"], data, rounds=2, warn=lambda _: None)
    other = found.verdicts["fedacs"]["against"]
    assert other.startswith("local@")
    assert found.verdicts["fedavg"]["against"] == "local"
    run, budget = found.runs["fedacs"][0], found.runs[other][0]
    assert found.gains()["fedacs"].tolist() == pytest.approx(run.accuracies["post"] - budget.accuracies["post"])
    assert found.table().loc["fedacs", "against"] == other
