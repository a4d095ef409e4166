"""CFL: cosines, complete linkage and the means of clusters by scalars and loops, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import hand_network as net
import pytest
import torch
import transcribed as by_hand
from hand_network import ROUNDS
from transcribed import Hand, Round

import fedkin as fk
from fedkin.collaborate import Bipartition
from fedkin.collaborate.bipartition import bipartition
from fedkin.keep import Everyone
from fedkin.messages import Reply
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD

TRAIN, TEST = (2, 3, 7, 11, 25, 4, 9), (3, 0, 5, 9, 4, 2, 3)
STEPS = SGD(eta=0.3, steps=3, batch=4)


def halves(vectors: dict[int, list[float]]) -> list[list[int]]:
    """Two groups of clients: join the two groups whose least similar members are most similar, until two are left."""
    groups = [[i] for i in sorted(vectors)]

    def near(one: list[int], other: list[int]) -> float:
        return min(net.cosine(vectors[i], vectors[j]) for i in one for j in other)

    while len(groups) > 2:
        pairs = [(near(p, q), -x, -y) for x, p in enumerate(groups) for y, q in enumerate(groups) if x < y]
        _, x, y = max(pairs)
        groups[-x] = groups[-x] + groups.pop(-y)
    return sorted(groups, key=len, reverse=True)


def card(hand: Hand) -> Iterator[Round]:
    part: Any = hand.method.collaborate
    train: Any = hand.method.train
    cluster, models = [0] * hand.n, [hand.first]
    for t in range(1, ROUNDS + 1):
        ids = hand.selected(t)
        sent = {i: models[cluster[i]] for i in ids}
        uploads = {i: net.sgd(sent[i], hand.batches(t, i), train.eta) for i in ids}
        updates = {i: net.combined((1.0, uploads[i]), (-1.0, sent[i])) for i in ids}
        weight = {i: hand.sizes[i] if part.weights == "size" else 1.0 for i in ids}
        for c in range(len(models)):
            inside = [i for i in ids if cluster[i] == c]
            if not inside:
                continue
            vectors = {i: net.numbers(updates[i]) for i in inside}
            mean = net.numbers(net.average([updates[i] for i in inside], [weight[i] for i in inside]))
            longest = max(sqrt(net.dot(v, v)) for v in vectors.values())
            torn = sqrt(net.dot(mean, mean)) < part.still and longest > part.apart
            groups = halves(vectors) if t > part.first and len(inside) > part.least and torn else [inside]
            before = models[c]
            for k, group in enumerate(groups):
                step = net.average([updates[i] for i in group], [weight[i] for i in group])
                after = net.combined((1.0, before), (1.0, step))
                if k == 0:
                    models[c] = after
                else:
                    for i in group:
                        cluster[i] = len(models)
                    models.append(after)
        post = [net.sgd(models[cluster[i]], hand.batches(t + 1, i), train.eta) for i in range(hand.n)]
        yield Round(sent, uploads, {}, post)


def composed(part: Bipartition, count: int = 7) -> Method:
    return Method("tried", Uniform(count=count), STEPS, Everyone(), part)


CASES = {
    "always torn": composed(Bipartition(100.0, 1e-9, 0)),
    "after a round": composed(Bipartition(100.0, 1e-9, 1, weights="size")),
    "by halves of three or more": composed(Bipartition(100.0, 1e-9, 0, least=3)),
    "some take part": composed(Bipartition(100.0, 1e-9, 0), 5),
    "never still": composed(Bipartition(1e-9, 1e-9, 0)),
    "never apart": composed(Bipartition(100.0, 100.0, 0)),
    "not yet": composed(Bipartition(100.0, 1e-9, 20)),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds(checked: Any, case: str) -> None:
    checked(CASES[case], card)


def test_cfl(checked: Any) -> None:
    checked(fk.methods.cfl(50.0, 1e-6, 0, eta=0.2, steps=2), card, again=True)


@pytest.mark.parametrize("seed", range(20))
def test_the_halves_are_those_of_complete_linkage(seed: int) -> None:
    models = by_hand.drawn(6, seed)
    vectors = {i: net.numbers(model) for i, model in enumerate(models)}
    cosines = torch.tensor([[net.cosine(vectors[i], vectors[j]) for j in range(6)] for i in range(6)])
    found = [half.tolist() for half in bipartition(cosines.double())]
    assert sorted(map(sorted, found)) == sorted(map(sorted, halves(vectors)))


def test_a_cluster_that_is_split_again_keeps_its_own_clients(federate: Any, started: Any) -> None:
    """The published code takes the places inside a cluster for clients when it splits a second time. Here clients 4 to
    7 are split among themselves, and nobody of 0 to 3 is moved by it."""
    federation = federate((3,) * 8, 2)
    method = composed(Bipartition(100.0, 1e-9, 0), 8)
    _, task, _ = started(method, federation)
    ids, slot = torch.arange(8), method.collaborate.init(task)
    large, small = [1, 1, 1, 1, -1, -1, -1, -1], [1, 1, -1, -1, 1, 1, -1, -1]
    for mixed in ((4.0, 1.0), (1.0, 4.0)):
        sent, slot = method.collaborate.send(slot, task, ids, None)
        before = sent.to(ids)["model"]
        name, _, other, _ = before
        upload = {key: value.clone() for key, value in before.items()}
        for i in range(8):
            upload[name][i] += mixed[0] * large[i]
            upload[other][i] += mixed[1] * small[i]
        ones = torch.ones(8, dtype=torch.float64)
        reply = Reply(ids, {"model": upload}, {"size": ones})
        slot = method.collaborate.receive(slot, task, sent, reply, ones)
    groups = {tuple((slot["cluster"] == c).nonzero()[:, 0].tolist()) for c in slot["cluster"].unique()}
    assert groups == {(0, 1), (2, 3), (4, 5), (6, 7)}
    kin = method.collaborate.send(slot, task, ids, None)[0].kin
    assert kin is not None
    assert kin.weights["model"][6].tolist() == [0, 0, 0, 0, 0, 0, 0.5, 0.5]
    assert method.collaborate.log(slot) == {"clusters": 4.0}
