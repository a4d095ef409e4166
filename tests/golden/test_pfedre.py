"""PFedRe against card 1.3 by scalars and loops over three rounds, in float64."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from typing import Any

import hand_network as net
import pfedre_transcribed as box
import pytest
import torch
import transcribed as by_hand
from hand_network import CLASSES, CLOSE, FEATURES, SEED
from pfedre_transcribed import ROUNDS, Outcome, Rule
from transcribed import Hand

import fedkin as fk
from fedkin import evaluate
from fedkin import round as rounds
from fedkin.core import tree
from fedkin.keep.relevance import Relevance, UpdateDistance
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD

TRAIN, TEST = (2, 3, 7, 11, 25, 4, 9), (3, 0, 5, 9, 4, 1, 2)
make = fk.methods
PARTICIPANTS = {"all": 1.0, "five": 5 / 7, "four": 4 / 7, "two": 2 / 7, "one": 1 / 7}

CASES: dict[str, tuple[Rule, str]] = {
    "local": (Rule(), "all"),
    "finetune": (Rule(personal="finetune"), "all"),
    "ditto": (Rule(personal="ditto", lam=0.7), "all"),
    "gamma": (Rule(gamma=0.5), "all"),
    "gamma, ditto": (Rule(gamma=0.3, personal="ditto", lam=1.0), "five"),
    "one rate": (Rule(delta=0.2), "all"),
    "scale": (Rule(base=1.5), "all"),
    "scale, capped": (Rule(base=100.0, gamma=0.1), "all"),
    "normalise": (Rule(normalise=True), "all"),
    "normalise, four": (Rule(normalise=True), "four"),
    "literal": (Rule(literal=True), "all"),
    "literal, scale, gamma": (Rule(literal=True, base=2.0, gamma=0.5), "five"),
    "two samples": (Rule(samples=2), "all"),
    "three samples, finetune, literal": (Rule(samples=3, personal="finetune", literal=True), "four"),
    "ten iterations": (Rule(iterations=10, rate=0.05), "all"),
    "five of seven": (Rule(), "five"),
    "four of seven": (Rule(samples=2, gamma=0.2), "four"),
    "two of seven": (Rule(), "two"),
    "one of seven": (Rule(personal="finetune"), "one"),
    "momentum": (Rule(momentum=0.5, eta=0.1), "all"),
    "momentum, gamma, normalise": (Rule(momentum=0.9, eta=0.05, gamma=0.2, normalise=True), "five"),
    "wide gap wanted": (Rule(min_gap=1e6), "all"),
    "no gap wanted": (Rule(min_gap=0.0), "all"),
    "learned labels": (Rule(learned=True), "all"),
    "learned labels, two samples, normalise": (Rule(learned=True, samples=2, normalise=True, iterations=10), "five"),
    "updates, l1": (Rule(metric="l1"), "all"),
    "updates, l2": (Rule(metric="l2", gamma=0.5), "five"),
    "updates, two": (Rule(metric="l1"), "two"),
    "updates, cosine, two": (Rule(metric="cosine"), "two"),
    "updates, cosine": (Rule(metric="cosine", personal="ditto", lam=0.5), "all"),
}


def method(rule: Rule, participants: str = "all") -> Method:
    made = make.pfedre(
        eta=rule.eta,
        epochs=1,
        batch=4,
        gamma=rule.gamma,
        eta_v=None if rule.delta == rule.eta else rule.delta,
        beta=rule.personal,
        lam=rule.lam if rule.personal == "ditto" else 1.0,
        fraction=PARTICIPANTS[participants],
        samples=rule.samples,
        iterations=rule.iterations,
        rate=rule.rate,
    )
    made = replace(made, train=replace(made.train, momentum=rule.momentum))
    if rule.metric != "inversion":
        return replace(made, keep=UpdateDistance(metric=rule.metric))
    labels = "learned" if rule.learned else "fixed"
    chosen = {"scale": rule.base, "normalise": rule.normalise, "literal": rule.literal, "min_gap": rule.min_gap}
    return replace(made, keep=replace(made.keep, labels=labels, **chosen))


def listened(keep: Any, monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """The masks this part gives, from now on."""
    masks: list[list[float]] = []
    call = type(keep).__call__

    def listening(self: Any, *rest: Any, **more: Any) -> Any:
        kept, slot = call(self, *rest, **more)
        masks.append(kept.tolist())
        return kept, slot

    monkeypatch.setattr(type(keep), "__call__", listening)
    return masks


def spoiling(engine: Any, spoilt: dict[int, int]) -> None:
    """From now on in these rounds one number of this client's upload is not finite."""
    train = engine.train

    def spoiled(part: Any, sent: Any, ids: Any, round: int, *rest: Any, **more: Any) -> Any:
        reply = train(part, sent, ids, round, *rest, **more)
        if round in spoilt:
            reply.upload["model"]["2.bias"][reply.ids.tolist().index(spoilt[round]), 1] = torch.inf
        return reply

    engine.train = spoiled


def near(found: torch.Tensor, wanted: list[float]) -> None:
    assert found.dtype == torch.float64
    assert found.tolist() == pytest.approx(wanted, rel=1e-8, abs=1e-10, nan_ok=True)


def played(
    started: Any,
    chosen: Method,
    rule: Rule,
    monkeypatch: pytest.MonkeyPatch,
    spoilt: dict[int, int] | None = None,
) -> list[Outcome]:
    play, task, state = started(chosen, rounds=ROUNDS)
    federation = play.federation
    hand = Hand(federation, chosen)
    heard = by_hand.listened(play)
    if spoilt:
        spoiling(play, spoilt)
    masks = listened(chosen.keep, monkeypatch)
    dummies = state.keep.get("start")
    if rule.metric == "inversion":
        assert dummies.shape == (CLASSES * rule.samples, FEATURES)
        assert dummies.dtype == torch.float64
    everyone = torch.arange(federation.n)
    outcomes = []
    for want in box.pfedre(hand, rule, [] if dummies is None else dummies.tolist(), spoilt):
        outcomes.append(want)
        heard.clear()
        masks.clear()
        state, log = rounds.play(chosen, task, play, state)
        reply = heard[0][2]
        good = [i for i in reply.ids.tolist() if i not in want.broken]
        assert log.selected.tolist() == list(want.uploads)
        assert log.dropped == want.broken
        if spoilt is None:
            rows = {
                name: value[torch.isin(reply.ids, torch.tensor(good))] for name, value in reply.upload["model"].items()
            }
            assert by_hand.farthest(rows, [want.uploads[i] for i in good]) < CLOSE
        near(state.keep["divergence"], want.divergence)
        assert masks == [[float(want.kept[i]) for i in good]]
        assert log.counted == sum(want.kept.values())
        assert state.keep["relevant"].tolist() == want.relevant
        never = set(want.broken) if spoilt is None else set(spoilt.values())
        for i, count in enumerate(want.judged):
            assert i in never or state.keep["judged"][i] == count
        server = chosen.collaborate.model(state.collaborate)
        assert server is not None
        assert by_hand.apart(server, want.server) < CLOSE
        judged = evaluate.personal_models(chosen, task, play, state, everyone)
        assert by_hand.farthest(judged, want.personal) < CLOSE
        assert set(play.slots.read(everyone)) == {"personal"}
        if dummies is not None:
            assert torch.equal(state.keep["start"], dummies)
    assert len(outcomes) == ROUNDS
    return outcomes


@pytest.mark.parametrize("case", CASES)
def test_rounds(started: Any, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    rule, participants = CASES[case]
    outcomes = played(started, method(rule, participants), rule, monkeypatch)
    out = [len(want.kept) - sum(want.kept.values()) for want in outcomes]
    if participants in ("one", "two") or case == "wide gap wanted":
        assert out == [0] * ROUNDS
    else:
        assert all(0 < count <= len(outcomes[0].kept) / 2 for count in out)


@pytest.mark.parametrize("metric", ["inversion", "l1"])
def test_who_is_not_finite_has_no_distance(started: Any, monkeypatch: pytest.MonkeyPatch, metric: str) -> None:
    """In one round: before and after it the client is scored, and its score of the round before stays."""
    rule = Rule(gamma=0.2, metric=metric)
    outcomes = played(started, method(rule), rule, monkeypatch, {2: 3})
    assert [3 in want.kept for want in outcomes] == [True, False, True]
    assert outcomes[0].divergence[3] == outcomes[1].divergence[3] != outcomes[2].divergence[3]


def test_who_never_is_finite_is_never_scored(federation: Any, started: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rule(samples=2)
    federation.x[federation.train[4][0]] = torch.nan
    outcomes = played(started, method(rule), rule, monkeypatch)
    assert all(want.broken == [4] for want in outcomes)
    assert [isnan(value) for value in outcomes[-1].divergence] == [i == 4 for i in range(len(TRAIN))]
    assert outcomes[-1].relevant[4] == 0


@pytest.mark.parametrize("name", ["fedmcsa", "fedavg"])
def test_in_front_of_another_method(start: Any, started: Any, name: str) -> None:
    """Only whose update counts is replaced; each update is inverted at the model its client was sent."""
    base = make.METHODS[name]()
    chosen = make.pfedre(base=base, samples=2, iterations=4, rate=0.2)
    assert replace(chosen, name=base.name, keep=base.keep) == base
    assert chosen.keep == Relevance(samples=2, iterations=4, rate=0.2)
    chosen = replace(chosen, select=Uniform(count=5), train=replace(chosen.train, batch=4, steps=3))
    play, task, state = started(chosen, rounds=2)
    rule, dummies = Rule(samples=2, iterations=4, rate=0.2), state.keep["start"].tolist()
    heard = by_hand.listened(play)
    for t in (1, 2):
        state, log = rounds.play(chosen, task, play, state)
        sent, _, reply = heard[t - 1]
        starts, goals = {}, {}
        for k, i in enumerate(reply.ids.tolist()):
            before, after = (
                {key: value[0].tolist() for key, value in stack.items()}
                for stack in (sent.to(torch.tensor([i]))["model"], tree.rows(reply.upload["model"], slice(k, k + 1)))
            )
            starts[i], goals[i] = before, box.target(rule, 0, before, after, chosen.train.eta, 3)
        z = []
        for i, goal in box.normalised(goals).items():
            x = torch.tensor(box.inverted(starts[i], goal, dummies, rule), dtype=torch.float64)
            z.append((x - state.keep["start"]).tolist())
        scores = [sum(box.between(p, q, 2) for q in z) for p in z]
        near(state.keep["divergence"][reply.ids], scores)
        assert log.counted == sum(box.majority(scores))


def test_the_transcription_descends_its_j(federate: Any) -> None:
    """The slopes of J by central differences, and a J that falls."""
    hand = Hand(federate(TRAIN, TEST, (FEATURES,), CLASSES), method(Rule(samples=2)))
    rule = Rule(samples=2, iterations=60)
    after = net.sgd(hand.first, hand.batches(1, 4), 0.2)
    goal = box.target(rule, 0, hand.first, after, 0.2, len(hand.batches(1, 4)))
    y = box.labels(2)
    x = [[0.1 * ((7 * k + 3 * j) % 11 - 5) for j in range(FEATURES)] for k in range(len(y))]

    def j(at: list[list[float]]) -> float:
        return box.mismatch(hand.first, list(zip(at, y, strict=True)), goal)

    slopes = box.slopes(hand.first, x, y, goal)
    for k in range(len(y)):
        for i in range(FEATURES):
            up, down = [list(row) for row in x], [list(row) for row in x]
            up[k][i] += 1e-5
            down[k][i] -= 1e-5
            assert slopes[k][i] == pytest.approx((j(up) - j(down)) / 2e-5, rel=1e-6, abs=1e-9)
    assert j(box.inverted(hand.first, goal, x, rule)) < 0.5 * j(x)


def test_the_personal_model_alone_is_locals(federation: Any) -> None:
    """A-R5: as printed, the personal model never sees the common one."""
    mine = make.pfedre(eta=0.2, batch=4, gamma=0.3, iterations=3)
    alone = replace(make.local(), train=SGD(eta=0.2, steps=None, epochs=1, batch=4, gamma=0.3))
    found, wanted = (
        fk.run(fk.Experiment(each, federation, net.network(), ROUNDS, SEED, dtype="float64")).models["personal"]
        for each in (mine, alone)
    )
    for name, value in wanted.items():
        assert torch.allclose(found[name], value, atol=1e-12)


def test_who_all_do_the_same_are_all_kept(federate: Any) -> None:
    """Clients with the same samples in one batch have equal scores; then this is FedAvg."""
    federation = federate((6,) * 4, 2, (FEATURES,), CLASSES)
    rows = federation.train[0]
    for client in range(1, 4):
        federation.x[federation.train[client]] = federation.x[rows]
        federation.y[federation.train[client]] = federation.y[rows]
    mine = make.pfedre(eta=0.2, batch=8, iterations=5, samples=2)
    mine = replace(mine, train=replace(mine.train, steps=2, epochs=None))  # a batch of everything is not shuffled
    average = replace(make.fedavg(count=4), train=SGD(eta=0.2, steps=2, batch=8))
    found, wanted = (
        fk.run(fk.Experiment(each, federation, net.network(), ROUNDS, SEED, dtype="float64"))
        for each in (mine, average)
    )
    assert [line["kept"] for line in found.lines] == [4.0] * ROUNDS
    for name, value in wanted.models["global"].items():
        assert torch.allclose(found.models["global"][name], value, atol=1e-12)
