"""What the transcriptions share: the network of `hand_network.py`, and the comparison of a card with a run.

Only the random choices (who is selected, which rows a batch has) and the first model are taken from fedkin. A
transcription of a card is a generator of `Round`s, and `checked` plays the method beside it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
import pytest
import torch
from hand_network import (
    CLASSES,
    CLOSE,
    FEATURES,
    HIDDEN,
    ROUNDS,
    SEED,
    A,
    B,
    Model,
    Sample,
    a,
    b,
    combined,
    network,
    scored,
    scored_by,
    sgd,
)
from small import seen_round

import fedkin as fk
from fedkin import evaluate
from fedkin.core.rng import generator
from fedkin.engines import Plain
from fedkin.engines.problem import task_of
from fedkin.parts import Method

# one run by hand


@dataclass
class Round:
    """What a card says of one round; lists have a place for every client."""

    sent: dict[int, Model]
    uploads: dict[int, Model]
    slots: dict[str, list[Model]]
    judged: list[Model] | None  # None where a client is judged by more than one model
    server: Model | None = None
    received: list[Model] | None = None
    also: dict[str, list[Model]] = field(default_factory=dict)  # further models that are scored, by kind
    predicts: list[Callable[[list[float]], list[float]]] = field(default_factory=list)  # instead of `judged`


class Hand:
    """What a transcription may know: the clients' samples, the first model, who is selected, and the batches."""

    def __init__(self, federation: fk.Federation, method: Method):
        self.method, self.federation, self.n = method, federation, federation.n
        self.x, self.y = federation.x.double().tolist(), federation.y.tolist()
        self.sizes = [float(size) for size in federation.train.sizes.tolist()]
        self.engine = Plain(
            federation, network(), method.train, SEED, own=method.collaborate.gives.own_model, dtype=torch.float64
        )
        self.task = task_of(federation, self.engine.network, ROUNDS, self.engine.seed)
        self.first = {name: value.tolist() for name, value in self.engine.network.model.items()}

    def selected(self, t: int) -> list[int]:
        return self.method.select({}, self.task, t, generator(SEED, "select", t))[0].tolist()

    def batches(self, t: int, client: int) -> list[list[Sample]]:
        plan = self.engine.batching.planned(self.method.train, t, torch.tensor([client]))
        found = []
        for rows, count in zip(plan.rows[:, 0].tolist(), plan.count[:, 0].tolist(), strict=True):
            assert count > 0
            found.append([(self.x[row], self.y[row]) for row in rows[:count]])
        return found

    def steps(self, t: int, client: int, each: int) -> list[list[list[Sample]]]:
        """The batches of every step, where a step takes several."""
        found, train = self.batches(t, client), self.method.train
        passes = train.epochs and train.epochs * ceil(self.sizes[client] / train.batch)
        assert len(found) == each * (train.steps or passes)
        return [found[k : k + each] for k in range(0, len(found), each)]

    def test(self, client: int) -> list[Sample]:
        return [(self.x[row], self.y[row]) for row in self.federation.test[client].tolist()]


def apart(found: dict[str, torch.Tensor], wanted: Model) -> float:
    assert set(found) == set(wanted)
    return max(float(np.abs(found[name].numpy() - np.array(wanted[name])).max()) for name in wanted)


def farthest(found: dict[str, torch.Tensor], wanted: list[Model]) -> float:
    """Over a stack of models."""
    assert all(len(value) == len(wanted) for value in found.values())
    return max(apart({name: value[k] for name, value in found.items()}, model) for k, model in enumerate(wanted))


def listened(engine: Any) -> list[Any]:
    """What the engine is told to train and what comes back, from now on: (sent, trainers, reply)."""
    heard: list[Any] = []
    train = engine.train

    def listening(part: Any, sent: Any, ids: Any, *rest: Any, **more: Any) -> Any:
        reply = train(part, sent, ids, *rest, **more)
        heard.append((sent, ids.tolist(), reply))
        return reply

    engine.train = listening
    return heard


Card = Callable[[Hand], Iterator[Round]]


def checked(
    started: tuple[Any, Any, Any], method: Method, federation: fk.Federation, card: Card, again: bool
) -> list[Round]:
    """Play the method round by round beside its card, and with `again` once more as an experiment."""
    hand = Hand(federation, method)
    play, task, state = started
    everyone = torch.arange(federation.n)
    heard = listened(play)
    wanted = []
    for t, want in enumerate(card(hand), 1):
        want = copy.deepcopy(want)
        wanted.append(want)
        heard.clear()
        state, log, seen = seen_round(method, task, play, state)
        sent, trainers, reply = heard[0]
        assert log.selected.tolist() == hand.selected(t)
        assert trainers == (list(range(federation.n)) if method.trains == "everyone" else hand.selected(t))
        assert sent.ids.tolist() == sorted(want.sent)
        assert reply.ids.tolist() == sorted(want.uploads)
        for what, given, models in (("sent", sent.to(sent.ids), want.sent), ("uploads", reply.upload, want.uploads)):
            assert set(given) == ({"model"} if models else set()), f"{what}, round {t}"
            if models:
                assert farthest(given["model"], [models[i] for i in sorted(models)]) < CLOSE, f"{what}, round {t}"
        slots = play.slots.read(everyone)
        assert set(slots) == set(want.slots)
        for name, stack in slots.items():
            assert farthest(stack, want.slots[name]) < CLOSE, f"slot {name}, round {t}"
        server = method.collaborate.model(state.collaborate)
        assert (server is None) == (want.server is None)
        if server is not None:
            assert apart(server, want.server) < CLOSE, f"server, round {t}"
        assert (seen.received is None) == (want.received is None)
        if seen.received is not None:
            assert farthest(seen.received, want.received) < CLOSE, f"received, round {t}"
        if want.judged is not None:
            judged = evaluate.personal_models(method, task, play, state, everyone)
            assert farthest(judged, want.judged) < CLOSE, f"judged, round {t}"
        compared(seen.scores, want, hand)
    assert len(wanted) == ROUNDS
    if again:
        run_again(method, federation, wanted, hand)
    return wanted


def run_again(method: Method, federation: fk.Federation, wanted: list[Round], hand: Hand) -> None:
    experiment = fk.Experiment(method, federation, network(), ROUNDS, SEED, evaluate_every=1, chunk=4, dtype="float64")
    result = fk.run(experiment)
    last = wanted[-1]
    assert ("global" in result.models) == (last.server is not None)
    if last.server is not None:
        assert apart(result.models["global"], last.server) < CLOSE
    if last.judged is not None and "personal" in result.models:  # not where a client's model is a fine-tuned one
        assert farthest(result.models["personal"], last.judged) < CLOSE
    assert federation.irrelevant is not None
    relevant = (~federation.irrelevant).nonzero()[:, 0].tolist()
    for line, want in zip(result.lines, wanted, strict=True):
        for kind, each in by_kind(want, hand).items():
            sizes, found = [len(hand.test(i)) for i in range(hand.n)], line["accuracy"][kind]
            for word, who in {"": relevant, "_all": list(range(hand.n))}.items():
                macro = [each[i][0] / sizes[i] for i in who if sizes[i]]
                micro = sum(each[i][0] for i in who) / sum(sizes[i] for i in who)
                expected = [sum(macro) / len(macro), micro]
                assert [found[f"macro{word}"], found[f"micro{word}"]] == pytest.approx(expected, abs=1e-12), kind
            loss = sum(each[i][1] for i in relevant) / sum(sizes[i] for i in relevant)
            assert line["loss"][kind] == pytest.approx(loss, abs=1e-8), kind
    assert np.isnan(result.accuracies["post"]).tolist() == [not hand.test(i) for i in range(hand.n)]


def post(want: Round, hand: Hand) -> list[tuple[int, float]]:
    if want.judged is not None:
        return [scored(model, hand.test(i)) for i, model in enumerate(want.judged)]
    return [scored_by(predict, hand.test(i)) for i, predict in enumerate(want.predicts)]


def by_kind(want: Round, hand: Hand) -> dict[str, list[tuple[int, float]]]:
    """Every client's right answers and loss, of every kind of model there is."""
    kinds = {"recv": want.received, "global": want.server and [want.server] * hand.n} | want.also
    found = {
        kind: [scored(model, hand.test(i)) for i, model in enumerate(models)]
        for kind, models in kinds.items()
        if models is not None
    }
    return found | {"post": post(want, hand)}


def compared(found: dict[str, Any], want: Round, hand: Hand) -> None:
    wanted = by_kind(want, hand)
    assert set(found) == set(wanted)
    for kind, each in wanted.items():
        assert found[kind].correct.tolist() == [right for right, _ in each], kind
        assert found[kind].loss.tolist() == pytest.approx([loss for _, loss in each], abs=1e-7), kind


# cards that clients with models of their own have in common

Mix = Callable[[list[Model], list[float]], list[Model]]


def mixed_then_pulled(hand: Hand, mix: Mix, mean: bool = False) -> Iterator[Round]:
    """Steps 1 to 5 of card 1.2: the selected exchange and get a new model and centre, then clients train. Cards 2.9
    and 2.10 have the same round with another mix. With `mean` the one model that all selected get is the server's."""
    method = hand.method
    train: Any = method.train
    theta, centre = [hand.first] * hand.n, [hand.first] * hand.n
    for t in range(1, ROUNDS + 1):
        ids = hand.selected(t)
        mixed = mix([theta[i] for i in ids], [hand.sizes[i] for i in ids])
        sent = dict(zip(ids, mixed, strict=True))
        for i in ids:
            theta[i] = sent[i]
            centre[i] = sent[i]
        received = list(theta)
        for i in range(hand.n):
            if method.trains == "everyone" or i in ids:
                lam = getattr(train, "lam", 0.0)
                theta[i] = sgd(
                    theta[i], hand.batches(t, i), train.eta, train.momentum, train.weight_decay, lam, centre[i]
                )
        slots = {"model": theta, "centre": centre} if hasattr(train, "lam") else {"model": theta}
        server = mixed[0] if mean else None
        yield Round(sent, {i: theta[i] for i in ids}, slots, theta, server, received)


def blended(rows: list[list[float]], models: list[Model]) -> list[Model]:
    """sum_j rows[i][j] models[j], for every i."""
    return [combined(*zip(row, models, strict=True)) for row in rows]


def counted(rows: list[list[float]], kept: list[float]) -> list[list[float]]:
    """How far each counts as a source for the others; who is left with nobody keeps its own."""
    result = []
    for i, row in enumerate(rows):
        row = [value * (1.0 if j == i else kept[j]) for j, value in enumerate(row)]
        total = 0.0
        for value in row:
            total += value
        if total > 0.0:
            result.append([value / total for value in row])
        else:
            result.append([1.0 if j == i else 0.0 for j in range(len(row))])
    return result


# stacks of random models for the pure functions of the mixing parts


def drawn(m: int, seed: int = 0, spread: float = 0.5) -> list[Model]:
    """Models around a common one."""
    draw = np.random.default_rng(seed)
    shapes = {A: (HIDDEN, FEATURES), a: (HIDDEN,), B: (CLASSES, HIDDEN), b: (CLASSES,)}
    centre = {name: draw.normal(size=shape) for name, shape in shapes.items()}
    return [{n: (centre[n] + spread * draw.normal(size=shapes[n])).tolist() for n in shapes} for _ in range(m)]


def stack(models: list[Model]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor([model[name] for model in models], dtype=torch.float64) for name in (A, a, B, b)}


def same(found: torch.Tensor, rows: list[list[float]]) -> None:
    assert found.shape == (len(rows), len(rows))
    assert float(np.abs(found.double().numpy() - np.array(rows)).max()) < 1e-10
