"""PFedRe (card 1.3) by scalars and loops.

Only the second derivatives of the inversion are torch's, through a network written out here; its Adam is by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite, nan, sqrt

import hand_network as net
import torch
from hand_network import CLASSES, FEATURES, A, B, Model, Sample, a, b
from transcribed import Hand

Vector = list[float]
ROUNDS = 3


@dataclass(frozen=True)
class Rule:
    """The card's inputs."""

    eta: float = 0.2
    delta: float = 0.3  # the personal rate
    gamma: float = 0.0
    momentum: float = 0.0
    personal: str = "local"
    lam: float = 0.0
    samples: int = 1
    iterations: int = 6
    rate: float = 0.1
    base: float = 1.0  # the card's a
    normalise: bool = False
    literal: bool = False
    min_gap: float | None = None
    learned: bool = False  # whether labels are optimised too
    metric: str = "inversion"  # or of the targets themselves: l1, l2, cosine


@dataclass
class Outcome:
    """After one round."""

    uploads: dict[int, Model]
    kept: dict[int, bool]  # of those whose upload is finite
    divergence: Vector
    relevant: list[int]
    judged: list[int]
    server: Model
    personal: list[Model]
    broken: list[int] = field(default_factory=list)


# the median, and what it is taken of


def median(values: Vector) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2.0


def cost(group: Vector) -> float:
    middle = median(group)
    total = 0.0
    for value in group:
        total += abs(value - middle)
    return total


def majority(scores: Vector, min_gap: float | None = None) -> list[bool]:
    """Step 5: which scores are in the larger group of the best cut."""
    if len(scores) == 1 or min(scores) == max(scores):
        return [True] * len(scores)
    order = sorted(range(len(scores)), key=lambda i: scores[i])
    best: tuple[float, int] | None = None
    chosen: tuple[list[int], list[int]] = [], []
    for cut in range(1, len(order)):
        low, high = order[:cut], order[cut:]
        total = cost([scores[i] for i in low]) + cost([scores[i] for i in high])
        found = total, -max(len(low), len(high))
        if best is None or found < best:
            best, chosen = found, (low, high)
    low, high = chosen
    if min_gap is not None:
        middle = median(scores)
        deviation = median([abs(value - middle) for value in scores])
        if median([scores[i] for i in high]) - median([scores[i] for i in low]) < min_gap * deviation:
            return [True] * len(scores)
    group = low if len(low) >= len(high) else high  # of two equally large the one with the lower scores
    return [i in group for i in range(len(scores))]


# step 3: the target, and the samples that would give it


def effective(steps: int, momentum: float) -> float:
    """K_eff of A-R1, step by step: how far a constant gradient of 1 goes at rate 1."""
    velocity, way = 0.0, 0.0
    for _ in range(steps):
        velocity = momentum * velocity + 1.0
        way += velocity
    return way


def target(rule: Rule, tau: int, before: Model, after: Model, rate: float, steps: float) -> Model:
    scale = min(rule.base**tau, 1e3)
    if rule.literal:  # eq. (3) as printed
        return net.combined((scale / steps, after), (-scale / steps, before))
    return net.combined((scale / (rate * steps), before), (-scale / (rate * steps), after))


def length(model: Model) -> float:
    values = net.numbers(model)
    return sqrt(net.dot(values, values))


def normalised(targets: dict[int, Model]) -> dict[int, Model]:
    middle = median([length(model) for model in targets.values()])
    return {i: net.combined((1.0 / middle, model)) for i, model in targets.items()} if middle > 0 else targets


def mismatch(w: Model, samples: list[Sample], goal: Model) -> float:
    """J, without torch."""
    total = 0.0
    for p, q in zip(net.numbers(net.gradient(w, samples)), net.numbers(goal), strict=True):
        total += (p - q) * (p - q)
    return total


def slopes(w: Model, x: list[Vector], y: list[int], goal: Model) -> list[Vector]:
    """Of J by every number of the samples."""
    hard = [[1.0 if c == label else 0.0 for c in range(CLASSES)] for label in y]
    return both_slopes(w, x, torch.tensor(hard, dtype=torch.float64), goal)[0]


def soft_slopes(w: Model, x: list[Vector], v: list[Vector], goal: Model) -> tuple[list[Vector], list[Vector]]:
    """Of J by every number of the samples and of the labels, which are exp(v_c) / sum of exp(v_.)."""
    numbers = torch.tensor(v, dtype=torch.float64, requires_grad=True)
    return both_slopes(w, x, numbers.exp() / numbers.exp().sum(1, keepdim=True), goal, numbers)


def both_slopes(
    w: Model, x: list[Vector], p: torch.Tensor, goal: Model, numbers: torch.Tensor | None = None
) -> tuple[list[Vector], list[Vector]]:
    weights = {name: torch.tensor(w[name], dtype=torch.float64, requires_grad=True) for name in (A, a, B, b)}
    inputs = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    loss = torch.zeros((), dtype=torch.float64)
    for k in range(len(x)):
        h = torch.tanh(weights[A].mv(inputs[k]) + weights[a])
        z = weights[B].mv(h) + weights[b]
        for c in range(CLASSES):
            loss = loss + p[k, c] * (z.exp().sum().log() - z[c]) / len(x)
    gradients = torch.autograd.grad(loss, [weights[name] for name in (A, a, B, b)], create_graph=True)
    total = torch.zeros((), dtype=torch.float64)
    for name, g in zip((A, a, B, b), gradients, strict=True):
        total = total + (g - torch.tensor(goal[name], dtype=torch.float64)).pow(2).sum()
    by = torch.autograd.grad(total, [inputs] if numbers is None else [inputs, numbers])
    return by[0].tolist(), by[-1].tolist()


def labels(samples: int) -> list[int]:
    return [c for c in range(CLASSES) for _ in range(samples)]


def inverted(w: Model, goal: Model, start: list[Vector], rule: Rule) -> list[Vector]:
    """x'*: Adam on J from x'_0; of the labels too, where they are learned."""
    x, y = [list(row) for row in start], labels(rule.samples)
    v = [[1.0 if c == label else 0.0 for c in range(CLASSES)] for label in y]
    moments: dict[tuple[str, int, int], tuple[float, float]] = {}
    for k in range(1, rule.iterations + 1):
        by_x, by_v = soft_slopes(w, x, v, goal) if rule.learned else (slopes(w, x, y, goal), [])
        for name, rows, slope in (("x", x, by_x), ("v", v, by_v)):
            for s, g in enumerate(slope):
                for j in range(len(g)):
                    first, second = moments.get((name, s, j), (0.0, 0.0))
                    first, second = 0.9 * first + 0.1 * g[j], 0.999 * second + 0.001 * g[j] * g[j]
                    moments[name, s, j] = first, second
                    m, u = first / (1.0 - 0.9**k), second / (1.0 - 0.999**k)
                    rows[s][j] -= rule.rate * m / (sqrt(u) + 1e-8)
    return x


# step 4: how far apart


def moved(p: Vector, q: Vector) -> float:
    """W1 between two samples of one size."""
    total = 0.0
    for x, y in zip(sorted(p), sorted(q), strict=True):
        total += abs(x - y)
    return total / len(p)


def between(z: list[Vector], other: list[Vector], samples: int) -> float:
    """D_il: classes lie one after another."""
    total = 0.0
    for c in range(CLASSES):
        rows = range(c * samples, (c + 1) * samples)
        for j in range(FEATURES):
            total += moved([z[k][j] for k in rows], [other[k][j] for k in rows])
    return total


def apart(u: Vector, v: Vector, metric: str) -> float:
    """The same of two targets."""
    if metric == "cosine":
        return 1.0 - net.cosine(u, v)
    difference = [x - y for x, y in zip(u, v, strict=True)]
    return sum(map(abs, difference)) if metric == "l1" else sqrt(net.dot(difference, difference))


def distances(
    rule: Rule, tau: int, w: Model, found: dict[int, Model], rate: float, steps: dict[int, int], start: list[Vector]
) -> dict[tuple[int, int], float]:
    """D of those in `found`."""
    goals = {i: target(rule, tau, w, model, rate, effective(steps[i], rule.momentum)) for i, model in found.items()}
    if rule.metric != "inversion":  # no box has this: what remains of it without the inversion
        u = {i: net.numbers(goal) for i, goal in goals.items()}
        return {(i, j): apart(u[i], u[j], rule.metric) if i != j else 0.0 for i in u for j in u}
    if rule.normalise:
        goals = normalised(goals)
    z = {}
    for i, goal in goals.items():
        x = inverted(w, goal, start, rule)
        z[i] = [[x[k][j] - start[k][j] for j in range(FEATURES)] for k in range(len(start))]
    return {(i, j): between(z[i], z[j], rule.samples) for i in z for j in z}


# the box


def finite(model: Model) -> bool:
    return all(isfinite(value) for value in net.numbers(model))


def pfedre(hand: Hand, rule: Rule, start: list[Vector], spoilt: dict[int, int] | None = None) -> Iterator[Outcome]:
    """`spoilt` is {round: a client whose upload does not arrive in one piece}."""
    omega, beta = hand.first, [hand.first] * hand.n
    divergence, relevant, judged = [nan] * hand.n, [0] * hand.n, [0] * hand.n
    for tau in range(ROUNDS):
        eta, delta = rule.eta / (1.0 + rule.gamma * tau), rule.delta / (1.0 + rule.gamma * tau)
        uploads: dict[int, Model] = {}
        steps: dict[int, int] = {}
        for i in hand.selected(tau + 1):
            batches = hand.batches(tau + 1, i)
            steps[i] = len(batches)
            lam = rule.lam if rule.personal == "ditto" else 0.0
            w = net.sgd(omega, batches, eta, rule.momentum)
            first = omega if rule.personal == "finetune" else beta[i]
            v = net.sgd(first, batches, delta, rule.momentum, mu=lam, centre=omega)
            uploads[i] = w
            if finite(v):
                beta[i] = v
        broken = [i for i, model in uploads.items() if not finite(model) or (spoilt or {}).get(tau + 1) == i]
        found = {i: model for i, model in uploads.items() if i not in broken}
        d = distances(rule, tau, omega, found, eta, steps, start)
        r = {i: sum(d[i, j] for j in found) for i in found}
        kept = dict(zip(found, majority(list(r.values()), rule.min_gap), strict=True))
        for i in found:
            divergence[i] = r[i]
            judged[i] += 1
            relevant[i] += kept[i]
        members = [i for i in found if kept[i]]
        omega = net.average([found[i] for i in members], [hand.sizes[i] for i in members])
        yield Outcome(uploads, kept, list(divergence), list(relevant), list(judged), omega, list(beta), broken)
