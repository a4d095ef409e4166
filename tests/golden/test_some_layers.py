"""FedPer, LG-FedAvg, FedRep and FedBABU: which layers are sent, trained and kept, by scalars and loops, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hand_network as net
import pytest
import torch
from hand_network import CLASSES, FEATURES, HIDDEN, ROUNDS, A, B, Model, a, b
from small import seen_round
from transcribed import Hand, Round

import fedkin as fk
from fedkin.collaborate import MeanBefore, Shared
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD, HeadThenBody

TRAIN, TEST = (2, 3, 7, 11, 25, 4), (3, 0, 5, 9, 4, 2)
STEPS = SGD(eta=0.3, steps=4, batch=4)
LAYERS = {"body": (A, a), "head": (B, b), "0": (A, a), "0, 2": (A, a, B, b)}


def only(model: Model, names: tuple[str, ...]) -> Model:
    return {name: model[name] for name in names}


def trained(start: Model, batches: Any, train: Any) -> Model:
    """SGD in which the first steps change the head and the others the body, or all change everything."""
    w, velocity = start, net.combined((0.0, start))
    for k, samples in enumerate(batches):
        g = net.combined((1.0, net.gradient(w, samples)), (train.weight_decay, w))
        v = net.combined((train.momentum, velocity), (1.0, g))
        after = net.combined((1.0, w), (-train.eta, v))
        names = (A, a, B, b)
        if isinstance(train, HeadThenBody):
            names = (B, b) if k + 1 <= train.head * len(batches) else (A, a)
        w, velocity = w | only(after, names), velocity | only(v, names)
    return w


def card(hand: Hand) -> Iterator[Round]:
    part: Any = hand.method.collaborate
    train: Any = hand.method.train
    names = LAYERS[part.share]
    common, theta = hand.first, [hand.first] * hand.n
    for t in range(1, ROUNDS + 1):
        ids = hand.selected(t)
        sent, uploads = {i: only(common, names) for i in ids}, {}
        for i in ids:
            rest = theta[i] if part.rest == "own" else hand.first
            theta[i] = trained(rest | sent[i], hand.batches(t, i), train)
            uploads[i] = only(theta[i], names)
        mean = net.average([theta[i] for i in ids], [hand.sizes[i] for i in ids])
        common = hand.first | only(mean, names)
        if part.rest == "own":
            yield Round(sent, uploads, {"model": theta}, theta)
        else:  # each takes the common model home and trains all of it
            home = SGD(**train.alone())
            yield Round(
                sent, uploads, {}, [trained(common, hand.batches(t + 1, i), home) for i in range(hand.n)], common
            )


def composed(part: Shared, train: SGD = STEPS, count: int = 4) -> Method:
    return Method("tried", Uniform(count=count), train, Everyone(), part)


CASES = {
    "fedper": composed(Shared(share="body")),
    "lgfedavg": composed(Shared(share="head")),
    "by name": composed(Shared(share="0")),
    "momentum": composed(Shared(share="body"), SGD(0.1, 4, None, 4, 0.5, 0.1)),
    "fedrep": composed(Shared(share="body"), HeadThenBody(eta=0.3, steps=4, batch=4, head=0.5)),
    "fedrep, epochs": composed(Shared(share="body"), HeadThenBody(0.2, None, 3, 4, 0.5, 0.1, head=0.6), 6),
    "fedbabu": composed(Shared(share="body", rest="first"), HeadThenBody(eta=0.3, steps=4, batch=4, head=0.0)),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(checked: Any, case: str) -> None:
    checked(CASES[case], card)


@pytest.mark.parametrize("name", ["fedper", "lgfedavg", "fedrep", "fedbabu"])
def test_methods(checked: Any, name: str) -> None:
    checked(getattr(fk.methods, name)(count=4, eta=0.1, steps=3), card, again=True)


def test_all_layers_by_name_are_the_base_itself(started: Any) -> None:
    models = []
    for part in (Shared(MeanBefore(), "0, 2"), MeanBefore()):
        method = Method("tried", Uniform(count=4), STEPS, Everyone(), part)
        engine, task, state = started(method)
        for _ in range(3):
            state, _, _ = seen_round(method, task, engine, state)
        models.append(engine.slots.read(torch.arange(6))["model"])
    torch.testing.assert_close(*models)


def test_traffic_is_of_what_is_shared(started: Any) -> None:
    body, head = FEATURES * HIDDEN + HIDDEN, HIDDEN * CLASSES + CLASSES
    for part, numbers in ((Shared(share="body"), body), (Shared(share="head"), head)):
        method = composed(part)
        engine, task, state = started(method)
        _, log, _ = seen_round(method, task, engine, state)
        assert log.traffic.bytes_up == log.traffic.bytes_down == 4 * 8 * numbers
        assert log.traffic.uploads == pytest.approx(4 * numbers / (body + head))


def test_what_stays_with_a_client_is_never_replaced(started: Any) -> None:
    """The classic mistake: the head is averaged, or starts anew in every round."""
    method = composed(Shared(share="body"), count=6)
    engine, task, state = started(method)
    for _ in range(2):
        before = engine.slots.read(torch.arange(6))["model"]
        state, log, _ = seen_round(method, task, engine, state)
    assert log.sent is not None
    assert set(log.sent.shared["model"]) == {A, a}
    heads = engine.slots.read(torch.arange(6))["model"][B]
    assert len({tuple(head.flatten().tolist()) for head in heads}) == 6
    assert not torch.equal(heads, before[B])


@pytest.mark.parametrize(("share", "sentence"), [("body", "no body"), ("neck", "no layer called 'neck'")])
def test_layers_that_are_not_there(federate: Any, share: str, sentence: str) -> None:
    model = "mlr" if share == "body" else "dnn:3"
    method = composed(Shared(share=share))
    with pytest.raises(fk.BadInput, match=f"{sentence}|needs a network with a body and a head"):
        fk.run(fk.Experiment(method, federate((4, 5, 6, 7)), model, rounds=1))
