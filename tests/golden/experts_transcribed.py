"""kin by hand: experts, shadows, mixtures and weights as the box in docs/papers/kin.md has them."""

from __future__ import annotations

from math import exp, log
from typing import Any

import hand_network as net
import torch
from hand_network import CLASSES, ROUNDS, Model, Sample
from transcribed import Hand

from fedkin.collaborate import ComponentAttention, MeanOfExperts
from fedkin.keep import Everyone
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import Experts

SMALL = {"eta": 0.3, "steps": 3, "batch": 4}
PLAIN: Any = ("alone", "tuned", "common", "shares")
EVERY: Any = ("alone", "tuned", "kin", "common", "shares")
WHOLE = ComponentAttention(sigma=3.0, granularity="model", similarity="update")


def composed(crossed: int, mixes: ComponentAttention | None = None, **changed: Any) -> Method:
    changed = {"folds": 5, "experts": EVERY if mixes else PLAIN} | changed
    train = Experts(**SMALL | changed, crossed=crossed)
    return Method("tried", Uniform(count=3), train, Everyone(), MeanOfExperts(crossed=crossed, kin=mixes))


def rows(hand: Hand, client: int) -> list[int]:
    index = hand.federation.train
    return index.rows[int(index.start[client]) : int(index.start[client + 1])].tolist()


def fold_of(hand: Hand, client: int) -> dict[int, int]:
    """Which fold each of a client's samples is of, by its row: a random choice, taken from fedkin."""
    start = int(hand.federation.train.start[client])
    folds = hand.engine.batching.folded(hand.method.train).of[start:].tolist()
    return dict(zip(rows(hand, client), folds, strict=False))


def planned(hand: Hand, t: int, client: int) -> list[list[int]]:
    plan = hand.engine.batching.planned(hand.method.train, t, torch.tensor([client]))
    pairs = zip(plan.rows[:, 0].tolist(), plan.count[:, 0].tolist(), strict=True)
    return [some[:count] for some, count in pairs]


def sample(hand: Hand, row: int) -> Sample:
    return hand.x[row], hand.y[row]


def stepped(w: Model, eta: float, samples: list[Sample]) -> Model:
    return net.combined((1.0, w), (-eta, net.gradient(w, samples))) if samples else w


def shares(hand: Hand, learnt: list[int], added: float) -> list[float]:
    counts = [added / CLASSES] * CLASSES
    for row in learnt:
        counts[hand.y[row]] += 1
    return [log(count / sum(counts)) for count in counts]


def experts(hand: Hand, own: list[Model], as_sent: list[Model], learnt: list[int], x: list[float]) -> Any:
    """The probabilities of all classes by each expert: those of the client, those that it was sent, and these with the
    client's label shares."""
    part: Any = hand.method.train
    found = [net.probabilities(net.logits(w, x)[0]) for w in [*own, *as_sent]]
    for common in as_sent:
        for added in part.added:
            of, z = shares(hand, learnt, added), net.logits(common, x)[0]
            found.append(net.probabilities([z[c] + of[c] for c in range(CLASSES)]))
    return found


def attention(hand: Hand, held: dict[int, Model], sigma: float) -> dict[int, dict[int, float]]:
    """Who learns from whom: the softmax of sigma times the cosines of how far models have moved since the first one."""
    moved = {i: net.numbers(net.combined((1.0, w), (-1.0, hand.first))) for i, w in held.items()}
    length = {i: sum(v * v for v in of) ** 0.5 for i, of in moved.items()}
    found = {}
    for i in held:
        cosine = {}
        for j in held:
            both = length[i] * length[j]
            product = sum(p * q for p, q in zip(moved[i], moved[j], strict=True))
            cosine[j] = 1.0 if i == j else (product / both if min(length[i], length[j]) >= 1e-12 else 0.0)
        top = max(cosine.values())
        score = {j: exp(sigma * (c - top)) for j, c in cosine.items()}
        found[i] = {j: value / sum(score.values()) for j, value in score.items()}
    return found


def mixtures(hand: Hand, weights: dict[int, dict[int, float]], held: dict[int, Model]) -> dict[int, Model]:
    return {i: net.combined(*((a, held[j]) for j, a in of.items())) for i, of in weights.items()}


def weighed(right: list[list[float]], prior: list[float], even: list[float], strength: float) -> list[float]:
    """Expectation and maximisation, fifty times, from halfway between the prior and even weights."""
    found = [(m + e) / 2 for m, e in zip(prior, even, strict=True)]
    for _ in range(50):
        taken = [strength * m for m in prior]
        for q in right:
            total = sum(found[e] * q[e] for e in range(len(prior)))
            for e in range(len(prior)):
                taken[e] += found[e] * q[e] / total
        found = [value / (len(right) + strength) for value in taken]
    return found


def guarded(right: list[list[float]], pi: list[float], part: Any, before: float) -> tuple[float, bool]:
    """How much better the mixture is than alone, drawn towards the average before, and whether that is clear."""
    better = [log(sum(p * q for p, q in zip(pi, of, strict=True))) - log(of[0]) for of in right]
    total = len(better) + part.strength
    lead = (sum(better) + part.strength * before) / total
    error = sum((d - lead) ** 2 for d in better) ** 0.5 / total
    return lead, part.guard is None or lead >= part.guard * error


def card(hand: Hand) -> Any:
    part: Any = hand.method.train
    mixes: Any = hand.method.collaborate.kin  # type: ignore[attr-defined]
    crossed = part.crossed
    server, shadows, mean = hand.first, [hand.first] * crossed, None
    alone, tuned, kin = ([hand.first] * hand.n for _ in range(3))
    alone_without = [[hand.first] * hand.n for _ in range(crossed)]
    uploaded: dict[int, tuple[Model, list[Model]]] = {}
    mixture: dict[int, Model] = {}
    names = [*part.networks, *["shares"] * len(part.added) * (2 if mixes else 1)]
    mixed = [("kin" if name == "mixture" else name) in part.experts for name in names]
    number, even = len(names), [one / sum(mixed) for one in mixed]
    weights = [even for _ in range(hand.n)]
    judging, lead = list(weights), 0.0

    def mixing(ids: list[int]) -> tuple[dict[int, Model], list[dict[int, Model]]]:
        """What these clients are sent of their kin: the mixtures, and those of the shadows with the same weights."""
        if not mixes:
            return {}, []
        held = {i: uploaded[i][0] if i in uploaded else server for i in ids}
        of = attention(hand, held, mixes.sigma)
        without = [{i: uploaded[i][1][f] if i in uploaded else shadows[f] for i in ids} for f in range(crossed)]
        return mixtures(hand, of, held), [mixtures(hand, of, one) for one in without]

    for t in range(1, ROUNDS + 1):
        ids, up, leads = hand.selected(t), {}, []
        u, u_without = mixing(ids)
        new = {}
        for i in ids:
            w, without, fold = server, list(shadows), fold_of(hand, i)
            v, v_without = u.get(i), [one[i] for one in u_without]
            for some in planned(hand, t, i):
                w = stepped(w, part.eta, [sample(hand, row) for row in some])
                alone[i] = stepped(alone[i], part.eta, [sample(hand, row) for row in some])
                v = stepped(v, part.eta, [sample(hand, row) for row in some]) if mixes else None
                for f in range(crossed):
                    others = [sample(hand, row) for row in some if fold[row] != f]
                    without[f] = stepped(without[f], part.eta, others)
                    alone_without[f][i] = stepped(alone_without[f][i], part.eta, others)
                    if mixes:
                        v_without[f] = stepped(v_without[f], part.eta, others)
            right = []
            for row in rows(hand, i):
                f = fold[row]
                if f < crossed:
                    learnt = [other for other in rows(hand, i) if fold[other] != f]
                    own, as_sent = [alone_without[f][i], without[f]], [shadows[f]]
                    if mixes:
                        own, as_sent = [*own, v_without[f]], [*as_sent, u_without[f][i]]
                    p = experts(hand, own, as_sent, learnt, hand.x[row])
                    right.append([max(1e-6, of[hand.y[row]]) for of in p])
            weights[i] = weighed(right, mean or even, even, part.strength)
            ahead, clear = guarded(right, weights[i], part, lead)
            judging[i] = weights[i] if clear else [1.0] + [0.0] * (number - 1)
            leads.append(ahead)
            tuned[i], up[i] = w, (w, without)
            if v is not None:
                kin[i], new[i] = v, (v, v_without)
        uploaded |= new
        sizes = [hand.sizes[i] for i in ids]
        server = net.average([up[i][0] for i in ids], sizes)
        shadows = [net.average([up[i][1][f] for i in ids], sizes) for f in range(crossed)]
        mean, lead = [sum(weights[i][e] for i in ids) / len(ids) for e in range(number)], sum(leads) / len(leads)
        ever = set(uploaded) if mixes else {i for r in range(1, t + 1) for i in hand.selected(r)}
        mixture |= u

        def judged(i: int, x: list[float], ever: Any = ever, w: Any = server, m: Any = mean, u: Any = mixture) -> Any:
            own, as_sent = [alone[i], tuned[i]], [w]
            if mixes:
                own, as_sent = [*own, kin[i]], [w, u.get(i, w)]
            if i not in ever:
                own, as_sent = [w] * len(own), [w] * len(as_sent)
            pi = judging[i] if i in ever else m
            p = experts(hand, own, as_sent, rows(hand, i), x)
            return [log(sum(pi[e] * p[e][c] for e in range(number))) for c in range(CLASSES)]

        says = [[judged(i, x) for x, _ in hand.test(i)] for i in range(hand.n)]
        yield server, shadows, (mean, lead), {"alone": alone, "tuned": tuned, "kin": kin}, judging, says
