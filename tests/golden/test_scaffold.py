"""SCAFFOLD against card 2.3 by scalars and loops, on two quadratics, and where it must be plain SGD."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
import transcribed as by_hand
from torch import Tensor
from transcribed import CLASSES, CLOSE, FEATURES, SEED, Hand, Model

import fedkin as fk
from fedkin import round as rounds
from fedkin.collaborate import Control, Mean
from fedkin.core import tree
from fedkin.core.tree import Batch, Message
from fedkin.descent import Descent
from fedkin.engines import ENGINES
from fedkin.keep import Everyone
from fedkin.messages import Reply, Task, Work
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD, Scaffold

TRAIN, TEST = (2, 3, 7, 11, 25), (3, 0, 5, 9, 4)
NUMBERS = FEATURES * 4 + 4 + 4 * CLASSES + CLASSES
SMALL = Scaffold(eta=0.2, steps=3, batch=4)


# the card


def worth(steps: int, momentum: float) -> float:
    """K_eff of A-D7 by its meaning: every step's velocity holds the gradients of all steps before it."""
    total = 0.0
    for k in range(steps):
        for j in range(k + 1):
            total += momentum**j
    return total


def local(w: Model, c: Model, mine: Model, batches: list[Any], rate: float, part: Any) -> tuple[Model, Model]:
    """(y, c_i+): each step y <- y - eta (g_B(y) - c_i + c), then option II."""
    y = copy.deepcopy(w)
    velocity = [0.0] * NUMBERS
    every, own = by_hand.numbers(c), by_hand.numbers(mine)
    for samples in batches:
        slopes = by_hand.numbers(by_hand.gradient(y, samples))
        for k, (row, i) in enumerate(by_hand.places(y)):
            step = slopes[k] + part.weight_decay * row[i] - own[k] + every[k]
            velocity[k] = part.momentum * velocity[k] + step
            row[i] -= rate * velocity[k]
    scale = 1.0 / (rate * worth(len(batches), part.momentum))
    return y, by_hand.combined((1.0, mine), (-1.0, c), (scale, w), (-scale, y))


@dataclass
class Server:
    """What the server and the clients remember."""

    w: Model
    c: Model
    mine: list[Model]

    @staticmethod
    def first(hand: Hand) -> Server:
        return Server(hand.first, by_hand.blank(), [by_hand.blank()] * hand.n)

    def round(self, hand: Hand, t: int, ids: list[int]) -> tuple[dict[int, Model], dict[int, Model]]:
        """One round with these clients: their y and their change of c_i."""
        part, server = hand.method.train, hand.method.collaborate
        ended = {i: local(self.w, self.c, self.mine[i], hand.batches(t, i), part.rate(t), part) for i in ids}
        ys = {i: y for i, (y, _) in ended.items()}
        changes = {i: by_hand.combined((1.0, ended[i][1]), (-1.0, self.mine[i])) for i in ids}
        shares = [hand.sizes[i] if server.weights == "size" else 1.0 for i in ids]
        mean = by_hand.average(list(ys.values()), shares)
        self.w = by_hand.combined((1.0 - server.beta, self.w), (server.beta, mean))
        moved = by_hand.average(list(changes.values()), [1.0] * len(ids))
        self.c = by_hand.combined((1.0, self.c), (len(ids) / hand.n, moved))
        self.mine = [ended[i][1] if i in ended else own for i, own in enumerate(self.mine)]
        return ys, changes


def composed(train: Scaffold = SMALL, server: Control | None = None, count: int = 3) -> Method:
    return Method("tried", Uniform(count=count), train, Everyone(), server or Control())


CASES = {
    "plain": composed(),
    "all": composed(count=5),
    "one": composed(count=1),
    "ragged": composed(replace(SMALL, steps=None, epochs=2)),
    "ragged, momentum": composed(replace(SMALL, steps=None, epochs=2, momentum=0.5)),
    "momentum": composed(replace(SMALL, momentum=0.9, eta=0.05)),
    "eta_g": composed(server=Control(beta=0.5)),
    "by size": composed(server=Control(weights="size", beta=1.5)),
    "decay": composed(replace(SMALL, weight_decay=0.05)),
    "rate decay": composed(replace(SMALL, rate_decay=0.7)),
}


@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize("case", CASES)
def test_rounds(federate: Any, start: Any, engine: str, case: str) -> None:
    played(start, engine, CASES[case], federate(TRAIN, TEST, (FEATURES,), CLASSES))


@pytest.mark.parametrize("engine", list(ENGINES))
def test_scaffold(federate: Any, start: Any, engine: str) -> None:
    method = fk.methods.scaffold(count=3)
    assert (type(method.train), method.collaborate) == (Scaffold, Control())
    assert (method.collaborate.weights, method.collaborate.beta) == ("uniform", 1.0)
    tiny = replace(method, train=replace(method.train, steps=3, batch=4))
    played(start, engine, tiny, federate(TRAIN, TEST, (FEATURES,), CLASSES))


def played(start: Any, engine: str, method: Method, federation: fk.Federation) -> None:
    hand = Hand(federation, method)
    play, task, state = start(
        ENGINES[engine], method, federation, by_hand.network(), seed=SEED, chunk=2, dtype=torch.float64
    )
    heard = by_hand.listened(play)
    server = Server.first(hand)
    everyone = torch.arange(hand.n)
    for t in range(1, by_hand.ROUNDS + 1):
        heard.clear()
        before = copy.deepcopy(server)
        state, log = rounds.play(method, task, play, state)
        ids = log.selected.tolist()
        assert ids == hand.selected(t)
        ys, changes = server.round(hand, t, ids)
        sent, _, reply = heard[0]
        assert set(sent.shared) == {"model", "control"}
        assert by_hand.apart(sent.shared["model"], before.w) < CLOSE
        assert by_hand.apart(sent.shared["control"], before.c) < CLOSE
        assert set(reply.upload) == {"model", "control"}
        assert by_hand.farthest(reply.upload["model"], list(ys.values())) < CLOSE
        assert by_hand.farthest(reply.upload["control"], list(changes.values())) < CLOSE
        slots = play.slots.read(everyone)
        assert set(slots) == {"control"}
        assert by_hand.farthest(slots["control"], server.mine) < CLOSE
        assert by_hand.apart(state.collaborate["model"], server.w) < CLOSE
        assert by_hand.apart(state.collaborate["control"], server.c) < CLOSE
        twice = 2 * len(ids)
        assert (log.traffic.uploads, log.traffic.downloads) == (twice, twice)
        assert log.traffic.bytes_up == log.traffic.bytes_down == twice * NUMBERS * 8
        judged = rounds.judged(method, task, play, state, everyone)
        part = method.train
        wanted = [
            local(server.w, server.c, server.mine[i], hand.batches(t + 1, i), part.rate(t + 1), part)[0]
            for i in range(hand.n)
        ]
        assert by_hand.farthest(judged, wanted) < CLOSE
        assert by_hand.farthest(play.slots.read(everyone)["control"], server.mine) < CLOSE  # a look changes nothing


def test_the_cost_of_a_run_is_twice_that_of_fedavg(federate: Any) -> None:
    federation = federate(TRAIN, TEST, (FEATURES,), CLASSES)
    fedavg = Method("tried", Uniform(count=3), SGD(steps=3, batch=4), Everyone(), Mean())
    costs = [
        fk.run(fk.Experiment(method, federation, by_hand.network(), 4)).summary["cost"]
        for method in (fedavg, composed())
    ]
    sent = {"uploads": 12, "downloads": 12, "bytes_up": 48 * NUMBERS, "bytes_down": 48 * NUMBERS}
    assert costs[0] == sent | {"client_rounds": 12}
    assert costs[1] == {name: 2 * value for name, value in sent.items()} | {"client_rounds": 12}


# two quadratics a_i / 2 (w - b_i)^2, with the parts alone


def number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


@dataclass(frozen=True)
class Quadratic:
    a: float
    b: float

    def grad(self, model: Message, batch: Batch) -> Message:
        return {"w": self.a * (model["w"] - self.b)}


@dataclass(frozen=True)
class Constant:
    slope: Tensor

    def grad(self, model: Message, batch: Batch) -> Message:
        return {"w": self.slope}


@dataclass(frozen=True)
class Flipped(Scaffold):
    """y <- y - eta (g + c_i - c)."""

    def descents(self) -> tuple[Descent, ...]:
        return (Descent("model", plus=("mine",), minus=("all",), momentum=self.momentum),)


@dataclass(frozen=True)
class Frozen(Scaffold):
    """c_i stays zero at the client, whatever it says."""

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        return mine, super().end(carry, sent, mine, work)[1]


@dataclass(frozen=True)
class Silent(Scaffold):
    """Nor does it say anything, so that c stays zero too."""

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        _, upload = super().end(carry, sent, mine, work)
        return mine, upload | {"control": tree.zeros(upload["control"])}


FS = (Quadratic(1.0, 0.0), Quadratic(4.0, 1.0))
MINIMUM = (1.0 * 0.0 + 4.0 * 1.0) / (1.0 + 4.0)
STEPS, ETA = 5, 0.05


def trained(part: SGD, f: Any, steps: int, sent: Message, mine: Message) -> tuple[Message, Message]:
    carry = part.begin(sent, mine)
    for _ in range(steps):
        carry = part.step(carry, ({},), f, part.eta)
    return part.end(carry, sent, mine, Work(number(1.0), number(float(steps)), number(part.eta)))


def rested(part: SGD, server: Mean, count: int = 400, each: int = 2) -> tuple[float, dict[str, Any], list[Message]]:
    """Where W comes to rest when all clients (or `each`, in turn) take part; the server's slot, the clients' own."""
    task = Task(2, torch.tensor([5, 5]), count, {"w": number(3.0)}, lambda model, batch: number(0.0))
    slot = server.init(task)
    mine = [part.slots(task.model, own=False) for _ in FS]
    for t in range(count):
        ids = torch.arange(2) if each == 2 else torch.tensor([t % 2])
        sent, slot = server.send(slot, task, ids, None)
        uploads = []
        for i in ids.tolist():
            mine[i], upload = trained(part, FS[i], STEPS, sent.shared, mine[i])
            uploads.append(upload)
        stack = {name: tree.stacked([upload[name] for upload in uploads]) for name in uploads[0]}
        reply = Reply(ids, stack, {"size": task.sizes[ids].double()})
        slot = server.receive(slot, task, sent, reply, torch.ones(len(ids), dtype=torch.float64))
        if "control" in slot and type(part) is Scaffold:
            mean = sum(float(own["control"]["w"]) for own in mine) / 2
            assert float(slot["control"]["w"]) == pytest.approx(mean, abs=1e-12)
    return float(slot["model"]["w"]), slot, mine


@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize("each", [2, 1])
def test_two_quadratics_reach_the_minimum(momentum: float, each: int) -> None:
    """Also with one client at a time; at rest c_i is the slope of f_i there, and c their mean, zero."""
    found, slot, mine = rested(Scaffold(eta=ETA, momentum=momentum), Control(), 600, each)
    assert found == pytest.approx(MINIMUM, abs=1e-9)
    assert float(slot["control"]["w"]) == pytest.approx(0.0, abs=1e-9)
    slopes = [f.a * (MINIMUM - f.b) for f in FS]
    assert [float(own["control"]["w"]) for own in mine] == pytest.approx(slopes, abs=1e-8)


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_fedavg_does_not(momentum: float) -> None:
    found, _, _ = rested(SGD(eta=ETA, momentum=momentum), Mean("uniform"))
    assert abs(found - MINIMUM) > 0.02


@pytest.mark.parametrize("wrong", [Flipped, Frozen, Silent])
def test_nor_does_a_wrong_correction(wrong: type[Scaffold]) -> None:
    """With the sign turned round, or with c_i never changed, the test above would fail."""
    found, _, _ = rested(wrong(eta=ETA), Control())
    assert not abs(found - MINIMUM) < 0.02


def test_a_silent_client_is_fedavg() -> None:
    assert rested(Silent(eta=ETA), Control())[0] == pytest.approx(rested(SGD(eta=ETA), Mean("uniform"))[0], abs=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("steps", [1, 2, 3, 10, 100])
def test_a_constant_gradient_is_found_exactly(momentum: float, steps: int) -> None:
    """A-D7: whatever c_i and c were, c_i+ is that gradient; dividing by K alone would be too much."""
    part, slope = Scaffold(eta=0.1, momentum=momentum), torch.tensor([0.7, -2.0], dtype=torch.float64)
    w = torch.tensor([3.0, 1.0], dtype=torch.float64)
    sent = {"model": {"w": w}, "control": {"w": torch.tensor([0.2, 0.4], dtype=torch.float64)}}
    before = torch.tensor([-1.0, 0.5], dtype=torch.float64)
    mine, upload = trained(part, Constant(slope), steps, sent, {"control": {"w": before}})
    torch.testing.assert_close(mine["control"]["w"], slope, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(upload["control"]["w"], slope - before, rtol=1e-11, atol=1e-11)
    moved = (w - upload["model"]["w"]) / (slope - before + sent["control"]["w"])
    torch.testing.assert_close(moved, torch.full_like(moved, 0.1 * worth(steps, momentum)), rtol=1e-10, atol=0.0)


# where it is plain SGD


@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_one_client_is_sgd(federate: Any, start: Any, engine: str, momentum: float) -> None:
    """N = 1, eta_g = 1: c is c_i, and the correction is nothing."""
    federation = federate((9,), (4,), (FEATURES,), CLASSES)
    found = []
    for part, server in ((replace(SMALL, momentum=momentum), Control()), (None, Mean())):
        train = part or SGD(eta=SMALL.eta, steps=SMALL.steps, batch=SMALL.batch, momentum=momentum)
        method = Method("tried", Uniform(count=1), train, Everyone(), server)
        play, task, state = start(
            ENGINES[engine], method, federation, by_hand.network(), seed=SEED, dtype=torch.float64
        )
        for _ in range(4):
            state, _ = rounds.play(method, task, play, state)
        found.append(state.collaborate)
    assert found[0]["control"]["2.bias"].abs().max() > 1e-3
    for name, value in found[1]["model"].items():
        torch.testing.assert_close(found[0]["model"][name], value, rtol=1e-12, atol=1e-12)


def test_nobody_kept_changes_nothing() -> None:
    task = Task(2, torch.tensor([5, 5]), 1, {"w": number(3.0)}, lambda model, batch: number(0.0))
    slot = Control().init(task)
    sent, slot = Control().send(slot, task, torch.arange(2), None)
    reply = Reply(torch.arange(2), {n: {"w": torch.ones(2)} for n in ("model", "control")}, {"size": torch.ones(2)})
    after = Control().receive(slot, task, sent, reply, torch.zeros(2))
    assert (float(after["model"]["w"]), float(after["control"]["w"])) == (3.0, 0.0)
    half = Control().receive(slot, task, sent, reply, torch.tensor([1.0, 0.0]))
    assert (float(half["model"]["w"]), float(half["control"]["w"])) == (1.0, 0.5)
