"""IFCA: the losses of all models, and the means of those who chose alike, by scalars and loops, in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hand_network as net
import pytest
import torch
import transcribed as by_hand
from hand_network import FEATURES, ROUNDS, Model
from small import seeded, seen_round
from torch import nn
from transcribed import Hand

import fedkin as fk
from fedkin import evaluate
from fedkin.collaborate import Several
from fedkin.core import tree
from fedkin.engines import Stacked
from fedkin.keep import Everyone, Krum
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Choosing

TRAIN, TEST = (2, 3, 7, 11, 25, 4, 9, 6), (3, 0, 5, 9, 4, 2, 3, 3)


def composed(k: int, weights: Any = "size", **train: Any) -> Method:
    part = Choosing(**({"eta": 0.3, "steps": 3, "batch": 4} | train))
    return Method("tried", Uniform(count=6), part, Everyone(), Several(k, weights))


def rows(stack: dict[str, torch.Tensor]) -> list[Model]:
    return [{name: value[c].tolist() for name, value in stack.items()} for c in range(len(next(iter(stack.values()))))]


def best(hand: Hand, models: list[Model], client: int) -> int:
    """The model with the smallest loss on all training samples."""
    samples = [(hand.x[row], hand.y[row]) for row in hand.federation.train[client].tolist()]
    losses = [net.scored(model, samples)[1] for model in models]
    return losses.index(min(losses))


CASES = {
    "two": composed(2),
    "three, alike": composed(3, "uniform"),
    "one": composed(1),
    "epochs": composed(3, steps=None, epochs=2, momentum=0.5),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(federation: Any, started: Any, case: str) -> None:
    method = CASES[case]
    train: Any = method.train
    hand = Hand(federation, method)
    engine, task, state = started(method)
    models = rows(state.collaborate["models"])
    for t in range(1, ROUNDS + 1):
        state, log, _ = seen_round(method, task, engine, state)
        ids = hand.selected(t)
        choice = {i: best(hand, models, i) for i in range(hand.n)}
        uploads = {i: net.sgd(models[choice[i]], hand.batches(t, i), train.eta, train.momentum) for i in ids}
        assert log.reply is not None
        assert log.reply.upload["choice"]["of"].argmax(1).tolist() == [choice[i] for i in ids]
        assert by_hand.farthest(log.reply.upload["model"], [uploads[i] for i in ids]) < 1e-9
        for c in range(len(models)):
            mine = [i for i in ids if choice[i] == c]
            share = [hand.sizes[i] if method.collaborate.weights == "size" else 1.0 for i in mine]  # type: ignore[attr-defined]
            models[c] = net.average([uploads[i] for i in mine], share) if mine else models[c]
        assert by_hand.farthest(state.collaborate["models"], models) < 1e-9
        home = [models[best(hand, models, i)] for i in range(hand.n)]
        judged = [net.sgd(w, hand.batches(t + 1, i), train.eta, train.momentum) for i, w in enumerate(home)]
        found = evaluate.personal_models(method, task, engine, state, torch.arange(hand.n))
        assert by_hand.farthest(found, judged) < 1e-9
        assert log.traffic.downloads == len(models) * len(ids)


def test_the_models_start_apart_and_with_the_same_numbers(started: Any) -> None:
    """The classic mistake: all models start alike, so that every client chooses the first for ever."""
    _, task, state = started(composed(3))
    models = [tree.row(state.collaborate["models"], c) for c in range(3)]
    for one, other in ((0, 1), (0, 2), (1, 2)):  # few numbers, as of a bias, may come to lie as they did
        assert not all(torch.equal(models[one][name], models[other][name]) for name in task.model)
    for name, value in task.model.items():
        assert torch.equal(models[0][name], value)
        for other in models[1:]:
            assert torch.equal(other[name].flatten().sort().values, value.flatten().sort().values)


def test_two_kinds_of_clients_find_two_models(start: Any) -> None:
    """The labels of half of the clients are turned round, so that no one model is right for all."""
    gen = torch.Generator().manual_seed(0)
    clients = {}
    for i in range(8):
        x = torch.randn(60, FEATURES, generator=gen)
        y = (x[:, 0] > 0).long()
        clients[f"site {i}"] = (x.numpy(), (y if i % 2 else 1 - y).numpy())
    method = fk.methods.ifca(k=2, count=8, eta=0.5, steps=10)
    module = seeded(lambda: nn.Sequential(nn.Linear(FEATURES, 4), nn.Tanh(), nn.Linear(4, 2)))
    engine, task, state = start(Stacked, method, fk.from_clients(clients), module, dtype=torch.float64)
    for name in ("2.weight", "2.bias"):  # what one of the two models says of a class, the other says of the other class
        state.collaborate["models"][name][1] = task.model[name].flip(0)
    for name in ("0.weight", "0.bias"):
        state.collaborate["models"][name][1] = task.model[name]
    for _ in range(5):
        state, _, _ = seen_round(method, task, engine, state)
    chosen = state.collaborate["cluster"].tolist()
    assert chosen in ([0, 1] * 4, [1, 0] * 4)
    kin = method.collaborate.send(state.collaborate, task, torch.arange(8), None)[0].kin
    assert kin is not None
    assert kin.weights["model"][0].tolist() == pytest.approx([0.25, 0.0] * 4)
    assert method.collaborate.log(state.collaborate) == {"clusters": 2.0}


def test_a_filter_that_compares_with_the_start_is_refused() -> None:
    with pytest.raises(fk.BadInput, match="clients choose where they start"):
        replace(fk.methods.ifca(), keep=Krum(0.2))
