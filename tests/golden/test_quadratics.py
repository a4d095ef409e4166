"""Training parts on f(w) = a/2 (w - b)^2, where every answer is known in closed form.

The parts take any objective with a gradient, so the quadratic stands in for the network: for many clients at once the
model is stacked, with a and b a row a client, which the fused step of the stacked engine takes as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from fedkin.collaborate import Mean
from fedkin.core.tree import Batch, Message, Model
from fedkin.engines import Stacked
from fedkin.messages import Reply, Sent, Task, Work
from fedkin.parts import Train
from fedkin.train import SGD, Prox


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@dataclass(frozen=True)
class Quadratic:
    a: Tensor
    b: Tensor

    def loss(self, model: Model, batch: Batch) -> Tensor:
        return 0.5 * self.a * (model["w"] - self.b) ** 2

    def grad(self, model: Model, batch: Batch) -> Model:
        return {"w": self.a * (model["w"] - self.b)}

    def add_grad(self, into: Model, keep: float, scale: float, model: Model, batch: Batch) -> None:
        slope = self.grad(model, batch)["w"]
        into["w"].mul_(keep).add_(slope, alpha=scale)


def declared(part: Train, start: Message, f: Quadratic, steps: int, mine: Message) -> Message:
    """The part as it stands: begin, and its own steps."""
    carry = part.begin(start, mine)
    for _ in range(steps):
        carry = part.step(carry, ({},), f, part.eta)
    return carry


def fused(part: Train, start: Message, f: Quadratic, steps: int, mine: Message) -> Message:
    """The same by the stacked engine's in-place form."""
    carry = {name: {"w": model["w"].clone()} for name, model in part.begin(start, mine).items()}
    engine: Any = SimpleNamespace(stacked_objective=f)
    for _ in range(steps):
        for descent in part.descents():
            Stacked.descend(engine, descent, carry, {}, part.eta)
    return carry


WAYS = pytest.mark.parametrize("way", [declared, fused])
F = Quadratic(tensor(1.0, 3.0, 0.5), tensor(2.0, -1.0, 4.0))
START = tensor(10.0, 10.0, -5.0)


def ended(way: Any, part: Train, steps: int, start: Tensor = START, f: Quadratic = F, **mine: Tensor) -> Tensor:
    found = way(part, {"model": {"w": start}}, f, steps, {name: {"w": value} for name, value in mine.items()})
    result: Tensor = found["model"]["w"]
    return result


@WAYS
@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_sgd_contracts(way: Any, steps: int) -> None:
    found = ended(way, SGD(eta=0.1), steps)
    torch.testing.assert_close(found, F.b + (1 - 0.1 * F.a) ** steps * (START - F.b))


@WAYS
def test_sgd_reaches_the_minimum(way: Any) -> None:
    torch.testing.assert_close(ended(way, SGD(eta=0.2), 1000), F.b)


@WAYS
def test_momentum(way: Any) -> None:
    """e_k = w_k - b and v_k obey a linear recursion: (v, e) <- [[m, a], [-eta m, 1 - eta a]] (v, e)."""
    m, eta = 0.9, 0.05
    for k in (1, 2, 9):
        found = ended(way, SGD(eta=eta, momentum=m), k)
        for i, a in enumerate(F.a.tolist()):
            once = tensor(m, a, -eta * m, 1 - eta * a).reshape(2, 2)
            error = torch.linalg.matrix_power(once, k) @ torch.stack([tensor(0.0), START[i : i + 1] - F.b[i]])
            torch.testing.assert_close(found[i], error[1, 0] + F.b[i])
    torch.testing.assert_close(ended(way, SGD(eta=eta, momentum=m), 1), ended(way, SGD(eta=eta), 1))
    torch.testing.assert_close(ended(way, SGD(eta=eta, momentum=m), 2000), F.b)


@WAYS
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_weight_decay(way: Any, momentum: float) -> None:
    """The minimum of f + wd/2 w^2."""
    found = ended(way, SGD(eta=0.1, weight_decay=0.7, momentum=momentum), 2000)
    torch.testing.assert_close(found, F.a * F.b / (F.a + 0.7))


@WAYS
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_prox(way: Any, momentum: float) -> None:
    """The minimum of f + lam/2 (w - c)^2, c being where it starts; without the pull's gradient it would be b."""
    part = Prox(eta=0.1, lam=2.0, momentum=momentum)
    wanted = (F.a * F.b + 2.0 * START) / (F.a + 2.0)
    found = ended(way, part, 2000)
    torch.testing.assert_close(found, wanted)
    assert ((found - F.b).abs() > 0.5).all()
    torch.testing.assert_close(ended(way, replace(part, lam=0.0), 2000), F.b)


@WAYS
def test_prox_with_decay_adds_both(way: Any) -> None:
    found = ended(way, Prox(eta=0.1, lam=2.0, weight_decay=1.0), 2000)
    torch.testing.assert_close(found, (F.a * F.b + 2.0 * START) / (F.a + 3.0))


@WAYS
def test_the_first_step_of_prox_is_that_of_sgd(way: Any) -> None:
    """At its centre nothing pulls; one step later something does."""
    prox, sgd = Prox(eta=0.1, lam=5.0), SGD(eta=0.1)
    torch.testing.assert_close(ended(way, prox, 1), ended(way, sgd, 1))
    by_hand = ended(way, sgd, 1)
    by_hand = by_hand - 0.1 * (F.a * (by_hand - F.b) + 5.0 * (by_hand - START))
    torch.testing.assert_close(ended(way, prox, 2), by_hand)


@WAYS
def test_prox_from_the_clients_own_model(way: Any) -> None:
    """start="own" begins at the client's model and is pulled to what was sent."""
    part, own = Prox(eta=0.1, lam=2.0, start="own"), tensor(1.0, 2.0, 3.0)
    one = ended(way, part, 1, model=own, centre=own)
    torch.testing.assert_close(one, own - 0.1 * (F.a * (own - F.b) + 2.0 * (own - START)))
    torch.testing.assert_close(ended(way, part, 0, model=own, centre=own), own)
    torch.testing.assert_close(ended(way, part, 2000, model=own, centre=own), (F.a * F.b + 2.0 * START) / (F.a + 2.0))


def test_prox_without_a_message_is_pulled_to_the_last_one() -> None:
    part, own, centre = Prox(eta=0.1, lam=2.0), tensor(1.0, 2.0, 3.0), tensor(-4.0, 0.0, 9.0)
    carry = part.begin(None, {"model": {"w": own}, "centre": {"w": centre}})
    for _ in range(2000):
        carry = part.step(carry, ({},), F, 0.1)
    torch.testing.assert_close(carry["model"]["w"], (F.a * F.b + 2.0 * centre) / (F.a + 2.0))
    kept, upload = part.end(carry, None, {"model": {"w": own}, "centre": {"w": centre}}, work())
    assert set(kept) == {"model", "centre"}
    assert torch.equal(kept["centre"]["w"], centre)
    assert torch.equal(upload["model"]["w"], carry["model"]["w"])


def work() -> Work:
    return Work(torch.tensor(1.0), torch.tensor(1.0), torch.tensor(0.1))


def test_velocity_rests_between_rounds() -> None:
    part = SGD(eta=0.05, momentum=0.9)
    carry = part.begin({"model": {"w": START}}, {})
    carry = part.step(carry, ({},), F, 0.05)
    kept, upload = part.end(carry, None, {}, work())
    assert kept == {}
    assert set(upload) == {"model"}
    again = part.begin(upload, kept)
    assert not again["velocity of model"]["w"].any()


def test_rate_decays_from_round_to_round() -> None:
    part = SGD(eta=0.4, rate_decay=0.5)
    assert [part.rate(t) for t in (1, 2, 4)] == [0.4, 0.2, 0.05]
    assert SGD(eta=0.4).rate(1000) == 0.4


# FedAvg on two quadratics


def task(n: int) -> Task:
    sizes = torch.tensor([30, 10, 5, 1][:n])
    return Task(n, sizes, 1, {"w": tensor(0.0)}, lambda model, batch: torch.zeros(()))


def averaged(part: SGD, mean: Mean, sizes: Tensor, f: Quadratic, steps: int, rounds: int) -> float:
    """FedAvg by the parts: every client trains from the mean, and the mean is taken again."""
    n = len(sizes)
    setting, ids = task(n), torch.arange(n)
    slot = mean.init(setting)
    for _ in range(rounds):
        sent, slot = mean.send(slot, setting, ids, None)
        carry = part.begin(sent.to(ids), {})
        for _ in range(steps):
            carry = part.step(carry, ({},), Quadratic(f.a[:, None], f.b[:, None]), part.eta)
        reply = Reply(ids, {"model": carry["model"]}, {"size": sizes.double()})
        slot = mean.receive(slot, setting, sent, reply, torch.ones(n, dtype=torch.float64))
    return float(mean.model(slot)["w"])


A, B, N = tensor(1.0, 4.0), tensor(0.0, 1.0), torch.tensor([30, 10])


@pytest.mark.parametrize("weights", ["size", "uniform"])
@pytest.mark.parametrize("steps", [1, 5])
def test_fedavg_on_two_curvatures(weights: Any, steps: int) -> None:
    """K steps take client i from w to b_i + q_i (w - b_i), q_i = (1 - eta a_i)^K, so the mean rests where
    sum p_i (1 - q_i) (b_i - w) = 0: at the minimum of the sum for K = 1 only."""
    eta = 0.2
    found = averaged(SGD(eta=eta), Mean(weights), N, Quadratic(A, B), steps, 100)
    p = N.double() if weights == "size" else torch.ones(2, dtype=torch.float64)
    pull = p * (1 - (1 - eta * A) ** steps)
    assert found == pytest.approx(float((pull * B).sum() / pull.sum()), abs=1e-9)
    minimum = float((p * A * B).sum() / (p * A).sum())
    if steps == 1:
        assert found == pytest.approx(minimum, abs=1e-9)
    else:
        assert abs(found - minimum) > 0.05


def test_fedprox_on_two_curvatures() -> None:
    """Solved to the end, client i goes to (a_i b_i + lam w) / (a_i + lam); the mean rests where
    sum p_i a_i / (a_i + lam) (b_i - w) = 0."""
    lam = 0.5
    found = averaged(Prox(eta=0.2, lam=lam), Mean(), N, Quadratic(A, B), 80, 30)
    pull = N * A / (A + lam)
    assert found == pytest.approx(float((pull * B).sum() / pull.sum()), abs=1e-9)


# the mean


def replied(*values: float) -> Reply:
    n = len(values)
    sizes = task(n).sizes.double()
    return Reply(torch.arange(n), {"model": {"w": tensor(*values)[:, None]}}, {"size": sizes})


@pytest.mark.parametrize(
    ("weights", "kept", "wanted"),
    [
        ("size", (1, 1, 1, 1), (30 * 1 + 10 * 2 + 5 * 4 + 1 * 8) / 46),
        ("uniform", (1, 1, 1, 1), 15 / 4),
        ("size", (0, 1, 0, 1), (10 * 2 + 8) / 11),
        ("uniform", (0, 1, 0, 1), 5.0),
        ("size", (0.5, 1, 0, 0), (15 * 1 + 10 * 2) / 25),
        ("uniform", (0.5, 1, 0, 0), 2.5 / 1.5),
        ("size", (0, 0, 0, 0), 7.0),
        ("uniform", (0, 0, 0, 0), 7.0),
    ],
)
def test_mean(weights: Any, kept: tuple[float, ...], wanted: float) -> None:
    slot = {"model": {"w": tensor(7.0)}}
    ids = torch.arange(4)
    after = Mean(weights).receive(slot, task(4), Sent(ids), replied(1, 2, 4, 8), tensor(*kept))
    assert float(after["model"]["w"]) == pytest.approx(wanted)
    assert float(slot["model"]["w"]) == 7.0


def test_a_mean_of_float32_is_taken_in_float64() -> None:
    values = torch.tensor([[1.0], [1e-8], [1e-8], [-1.0]])
    reply = Reply(torch.arange(4), {"model": {"w": values}}, {"size": torch.ones(4, dtype=torch.float64)})
    found = Mean().receive({}, task(4), Sent(torch.arange(4)), reply, torch.ones(4, dtype=torch.float64))
    assert found["model"]["w"].dtype == torch.float32
    assert float(found["model"]["w"]) == pytest.approx(0.5e-8, rel=1e-5)
