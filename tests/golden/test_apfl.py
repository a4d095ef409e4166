"""APFL against card 2.8: a mixture of two models a client by scalars and loops, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import hand_network as net
import pytest
import transcribed as by_hand
from hand_network import CLASSES, FEATURES, ROUNDS, Model, Sample
from small import tiny
from transcribed import Hand, Round

import fedkin as fk
from fedkin.collaborate import Mean
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import APFL

TRAIN, TEST = (2, 3, 7, 11, 25), (3, 0, 5, 9, 4)
SMALL = APFL(eta=0.3, alpha=0.5, adapt="first", steps=3, batch=4)


def mixed_logits(v: Model, w: Model, alpha: float, x: list[float]) -> list[float]:
    ours, theirs = net.logits(v, x)[0], net.logits(w, x)[0]
    return [alpha * ours[c] + (1.0 - alpha) * theirs[c] for c in range(CLASSES)]


def through(v: Model, w: Model, alpha: float, samples: list[Sample]) -> tuple[Model, Model]:
    """The slopes of the loss of the mixed outputs, taken back through f(v) and through f(w)."""
    into_v, into_w = net.blank(), net.blank()
    for x, y in samples:
        dz = net.slope(mixed_logits(v, w, alpha, x), y, len(samples))
        net.backward(into_v, v, x, net.logits(v, x)[1], dz)
        net.backward(into_w, w, x, net.logits(w, x)[1], dz)
    return into_v, into_w


def step(v: Model, w: Model, alpha: float, samples: list[Sample], part: Any, adapts: bool) -> tuple[Any, Any, float]:
    """(v, w, alpha), all from the values before the step."""
    if part.mix == "parameter":
        g = net.gradient(net.combined((alpha, v), (1.0 - alpha, w)), samples)
        along = g
    else:
        g, other = through(v, w, alpha, samples)
        along = net.combined((alpha, g), (1.0 - alpha, other))
    apart = net.numbers(net.combined((1.0, v), (-1.0, w)))
    slope = net.dot(apart, net.numbers(along)) + part.penalty * alpha
    new_w = net.combined((1.0, w), (-part.eta, net.gradient(w, samples)))
    new_v = net.combined((1.0, v), (-part.eta * alpha, g))
    new_alpha = min(1.0, max(0.0, alpha - part.eta * slope)) if adapts else alpha
    return new_v, new_w, new_alpha


def predicting(v: Model, w: Model, alpha: float) -> Callable[[list[float]], list[float]]:
    return lambda x: mixed_logits(v, w, alpha, x)


def card(hand: Hand) -> Iterator[Round]:
    part: Any = hand.method.train
    server = hand.first
    v, w, alpha = [hand.first] * hand.n, [hand.first] * hand.n, [part.alpha] * hand.n
    ever: set[int] = set()
    for t in range(1, ROUNDS + 1):
        ids = hand.selected(t)
        sent = dict.fromkeys(ids, server)
        for i in ids:
            w[i] = server
            for r, samples in enumerate(hand.batches(t, i)):
                adapts = part.adapt == "every" or (part.adapt == "first" and r == 0)
                v[i], w[i], alpha[i] = step(v[i], w[i], alpha[i], samples, part, adapts)
        ever |= set(ids)
        uploads = {i: w[i] for i in ids}
        server = net.average(list(uploads.values()), [hand.sizes[i] for i in ids])
        slots = {"own": v, "model": w, "mix": [{"alpha": value} for value in alpha]}
        for i, mix in enumerate(slots["mix"]):
            mix["trained"] = float(i in ever)
        common = [w[i] if i in ever else server for i in range(hand.n)]  # never selected: mixed with the current w
        judged = [net.combined((alpha[i], v[i]), (1.0 - alpha[i], common[i])) for i in range(hand.n)]
        predicts = [predicting(v[i], common[i], alpha[i]) for i in range(hand.n)]
        yield Round(sent, uploads, slots, judged if part.mix == "parameter" else None, server, predicts=predicts)


def composed(train: APFL) -> Method:
    return Method("tried", Uniform(count=3), train, Everyone(), Mean())


CASES = {
    f"{adapt}, {mix}": composed(replace(SMALL, adapt=adapt, mix=mix))  # type: ignore[arg-type]
    for adapt in ("first", "every", "never")
    for mix in ("parameter", "output")
} | {
    "penalty": composed(replace(SMALL, adapt="every", penalty=0.5)),
    "penalty, output": composed(replace(SMALL, adapt="first", penalty=0.5, mix="output")),
    "clipped": composed(replace(SMALL, adapt="every", penalty=4.0, alpha=0.3)),
    "mostly own": composed(replace(SMALL, alpha=0.9, adapt="every", eta=0.8)),
    "nothing own": composed(replace(SMALL, alpha=0.0)),
    "all own": composed(replace(SMALL, alpha=1.0, adapt="never")),
    "epochs": composed(replace(SMALL, steps=None, epochs=2)),
    "epochs, every": composed(replace(SMALL, steps=None, epochs=2, adapt="every", mix="output")),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(checked: Any, case: str) -> None:
    wanted = checked(CASES[case], card)
    alphas = [mix["alpha"] for want in wanted for mix in want.slots["mix"]]
    if case == "clipped":
        assert 0.0 in alphas
    if case in ("every, parameter", "every, output"):
        assert max(abs(alpha - 0.5) for alpha in alphas) > 1e-3


@pytest.mark.parametrize("alpha", [0.5, 0.75])
def test_apfl(checked: Any, alpha: float) -> None:
    method = fk.methods.apfl(alpha=alpha, count=3)
    assert method.train.alpha == alpha
    checked(tiny(method), card, again=True)


def test_the_slope_of_the_outputs_is_a_slope(federate: Any) -> None:
    """The transcription's own way back through f(v), against differences of its own loss."""
    hand = Hand(federate(TRAIN, TEST, (FEATURES,), CLASSES), composed(SMALL))
    samples = hand.batches(1, 4)[0]
    v, w = by_hand.drawn(2)
    slopes = net.numbers(through(v, w, 0.3, samples)[0])
    for k, (row, i) in enumerate(net.places(v)):
        middle, losses = row[i], []
        for shift in (1e-6, -1e-6):
            row[i] = middle + shift
            losses.append(net.scored_by(predicting(v, w, 0.3), samples)[1] / len(samples))
        row[i] = middle
        assert (losses[0] - losses[1]) / 2e-6 == pytest.approx(0.3 * slopes[k], abs=1e-8)
