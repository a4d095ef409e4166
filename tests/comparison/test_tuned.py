"""Comparisons of tuned methods: what they say of the budget, and which Local they have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import fedkin as fk
from fedkin.comparison.plan import with_local
from fedkin.comparison.tuned import SEVERAL_SPLITS, notes_of, tuned_sentences
from fedkin.parts import Method
from fedkin.runs.files import write
from fedkin.runs.toml import toml
from fedkin.runs.verdict import compared_with, uneven
from fedkin.tuning.budget import Tried
from fedkin.tuning.plan import tunable_locals
from fedkin.tuning.tune import Tuned, together

DATA = fk.Data("digits", clients=4, validation=0.2)


def note(**other: object) -> dict[str, object]:
    return {"trials": 20, "rounds": 100, "seeds": [0], "metric": "accuracy", "value": 0.9} | other


def at_rate(method: Method, eta: float) -> Method:
    return replace(method, train=replace(method.train, eta=eta))


def tuned(method: Method, **other: object) -> Tuned:
    tried = (Tried(0, {}, "done", 0.9, 100),)
    return Tuned(fk.Experiment(method, DATA, rounds=3), note(**other), tried, (0,), Path())


def saved(path: Path, *found: Tuned) -> str:
    write(path, toml(together(found)).encode())
    return str(path)


def quietly(*targets: str | Method, **options) -> fk.Comparison:
    return fk.compare(list(targets), warn=lambda _: None, evaluate_every=3, **options)


def test_every_method_tuned_with_the_same_budget_is_said_so(tmp_path: Path) -> None:
    several = [tuned(at_rate(named(), 0.05)) for named in (fk.methods.local, fk.methods.fedavg)]
    found = quietly(saved(tmp_path / "all.toml", *several))
    said = "Every method tuned with the same budget: 20 trials of 100 rounds, by validation accuracy."
    assert found.summary["tuned"]["sentences"] == [said]
    assert said in str(found)
    assert said in found.report(tmp_path / "page.html").read_text()


def test_another_budget_and_methods_that_were_not_tuned_are_named() -> None:
    notes = {"a": note(), "b": note(trials=10, seeds=[0, 1])}
    first = "Not every method was tuned with the same budget. Tuned: a (20 trials of 100 rounds)"
    assert tuned_sentences(["a", "b"], notes) == [f"{first}, b (10 trials of 100 rounds x 2 seeds)."]
    only = {"a": note()}
    alone = "Not tuned itself: local, which has the steps and the rate of a method."
    assert tuned_sentences(["local", "a", "c"], only) == [f"{first}. Not tuned: c.", alone]
    assert tuned_sentences(["a"], {}) == []


def test_settings_that_were_changed_afterwards_are_not_tuned(tmp_path: Path) -> None:
    path = saved(tmp_path / "fedavg.toml", tuned(fk.methods.fedavg(eta=0.05)))
    same, other = (fk.Experiment(fk.methods.fedavg(eta=eta), DATA) for eta in (0.05, 0.06))
    assert notes_of([path], [same])["fedavg"]["elsewhere"] is False
    assert notes_of([path], [other]) == {}
    assert notes_of(["fedavg"], [same]) == {}
    renamed = replace(same, method=replace(same.method, name="mine"))
    assert list(notes_of([path], [renamed])) == ["mine"]


def test_other_data_than_those_of_the_tuning_are_said(tmp_path: Path) -> None:
    path = saved(tmp_path / "fedavg.toml", tuned(fk.methods.fedavg(eta=0.05)))
    elsewhere = fk.Experiment(fk.methods.fedavg(eta=0.05), replace(DATA, seed=1))
    notes = notes_of([path], [elsewhere])
    assert "Tuned on other data or with another model: fedavg." in tuned_sentences(["fedavg"], notes)


def test_a_tuned_method_is_compared_with_the_local_that_was_tuned_too() -> None:
    methods = [at_rate(fk.methods.local(), 0.3), fk.methods.fedavg(eta=0.05), fk.methods.fedprox(eta=0.07)]
    names = [method.name for method in methods]
    assert [method.name for method in with_local(methods, names)] == names, "no Local at the rates of the methods"
    assert compared_with(methods, names) == {"fedavg": "local", "fedprox": "local"}
    assert uneven(methods, names) == []
    some = with_local(methods, ["fedavg", "local"])
    assert compared_with(some, ["fedavg", "local"]) == {"fedavg": "local", "fedprox": "local@eta=0.07"}
    assert fk.methods.local() in with_local([fk.methods.local(), fk.methods.fedavg(eta=0.5)], ["local", "fedavg"])


def test_there_is_a_local_to_tune_for_each_budget_of_steps() -> None:
    methods = [fk.methods.fedavg(), fk.methods.fedprox(eta=0.5), fk.methods.fedacs()]
    locals = tunable_locals(methods)
    assert [method.name for method in locals] == ["local", "local@batch=10@epochs=5"]
    moved = [at_rate(method, 0.9) for method in locals]
    names = [method.name for method in (*locals, *methods)]
    assert compared_with([*moved, *methods], names)["fedacs"] == "local@batch=10@epochs=5"


def test_several_splits_of_tuned_methods_are_warned_of(tmp_path: Path) -> None:
    path = saved(tmp_path / "fedavg.toml", tuned(fk.methods.fedavg(eta=0.05)))
    assert SEVERAL_SPLITS in quietly(path, splits=2).summary["cautions"]
    assert SEVERAL_SPLITS not in quietly(path).summary["cautions"]


def test_a_note_that_is_no_note_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('method = "fedavg"\ntuned = "yes"\n')
    with pytest.raises(fk.BadInput, match="not as fedkin tune writes it"):
        quietly(str(path), data=DATA, rounds=2)
