"""Any part goes with any other, or is refused by one sentence when the method is built; nothing else happens."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
import torch
from registry import BASES, KINDS, example

import fedkin as fk
from fedkin.parts import Method, Part

ROLES = {kind.verb: [label for label in KINDS if issubclass(Part.known[label], kind)] for kind in BASES.values()}
PAIRS = [
    {one: first, other: second}
    for one, other in combinations(ROLES, 2)
    for first, second in product(ROLES[one], ROLES[other])
]
TRIPLES = [
    {"train": train, one: first, other: second}
    for one, other in (("select", "keep"), ("select", "collaborate"), ("keep", "collaborate"))
    for train, first, second in product(ROLES["train"], ROLES[one], ROLES[other])
]
WHO = [("selected", "selected"), ("everyone", "selected"), ("everyone", "everyone")]


@pytest.fixture(scope="module")
def four() -> fk.Federation:
    """Four clients of eight samples, one of them irrelevant, and four samples of the server's own."""
    draw = np.random.default_rng(0)
    clients = {f"site {i}": (draw.normal(size=(8, 3)), np.arange(8) % 2) for i in range(4)}
    made = fk.from_clients(clients)
    return replace(made, irrelevant=torch.arange(4) == 3, common=torch.arange(4), server=torch.arange(4, 8))


@cache
def little(label: str) -> Part:
    """The part of this name with little work, and for few clients."""
    part = example(label)
    names = {field.name for field in fields(part)}  # type: ignore[arg-type]
    if isinstance(part, fk.Train):
        return replace(part, steps=2, epochs=None, batch=4)  # type: ignore[call-arg]
    return replace(part, count=2, fraction=None) if {"count", "fraction"} <= names else part  # type: ignore[type-var]


def built(labels: dict[str, str], trains: str = "selected", receives: str = "selected") -> Method | None:
    """FedAvg with these parts in place of its own; None where they are refused, in one sentence."""
    parts = {verb: little(label) for verb, label in labels.items()}
    base, parts = fk.methods.fedavg(), {"train": little("SGD")} | parts
    try:
        return replace(base, name="tried", trains=trains, receives=receives, **parts)  # type: ignore[arg-type]
    except fk.BadInput as refusal:
        sentence = str(refusal)
    assert sentence.endswith("."), sentence
    assert "\n" not in sentence, sentence
    return None


def plays(
    method: Method, federation: fk.Federation, engine: str = "stacked", score: tuple[str, ...] | None = None
) -> None:
    model = "dnn:2" if method.needs.layers else "mlr"
    experiment = fk.Experiment(method, federation, model, rounds=2, evaluate_every=2, engine=engine, score=score)
    assert fk.run(experiment, warn=lambda sentence: None).finished


def fitting(every: list[dict[str, str]]) -> Iterator[tuple[str, Method]]:
    """The methods of these choices of parts that are not refused, and what they are made of."""
    for labels in every:
        if (method := built(labels)) is not None:
            yield " with ".join(labels.values()), method


@pytest.mark.parametrize("verbs", [*combinations(ROLES, 2)], ids="-".join)
def test_every_pair_of_parts_works_or_is_refused(four: fk.Federation, verbs: tuple[str, str]) -> None:
    tried = 0
    for name, method in fitting([labels for labels in PAIRS if tuple(labels) == verbs]):
        try:
            plays(method, four)
        except Exception as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error
        tried += 1
    assert tried > 5


@pytest.mark.parametrize("train", ROLES["train"])
def test_every_triple_with_a_train_part_works_or_is_refused(four: fk.Federation, train: str) -> None:
    """What pairs are scored by is scored there; here only what the method is judged by."""
    for name, method in fitting([labels for labels in TRIPLES if labels["train"] == train]):
        try:
            plays(method, four, score=(method.judged,))
        except Exception as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("engine", ["stacked", "plain"])
def test_some_triples_work_whoever_trains_and_receives(four: fk.Federation, engine: str) -> None:
    for labels in random.Random(0).sample(TRIPLES, 40):
        for trains, receives in WHO:
            if (method := built(labels, trains, receives)) is not None:
                try:
                    plays(method, four, engine)
                except Exception as error:
                    raise AssertionError(f"{labels}, {trains}, {receives}: {error!r}") from error


def test_every_choice_of_parts_can_be_asked_for() -> None:
    """Of all choices of four parts and of who trains and receives, each is built or refused by a sentence."""
    every = [dict(zip(ROLES, labels, strict=True)) for labels in product(*ROLES.values())]
    found = [built(labels, *who) is not None for labels in random.Random(0).sample(every, 500) for who in WHO]
    assert 0.1 < sum(found) / len(found) < 0.9


def test_control_variates_go_both_ways_or_not_at_all() -> None:
    with pytest.raises(fk.BadInput, match=r"Scaffold needs a model called 'control' .* which Mean does not"):
        replace(fk.methods.fedavg(), train=fk.train.Scaffold())
    with pytest.raises(fk.BadInput, match=r"Control takes a model called 'control' .* which SGD does not"):
        replace(fk.methods.fedavg(), collaborate=fk.collaborate.Control())
