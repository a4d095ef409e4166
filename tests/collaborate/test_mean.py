"""The mean of what clients uploaded, and where it takes FedAvg and FedProx on two quadratics."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from train.quadratic import Quadratic, tensor

from fedkin.collaborate import Mean
from fedkin.messages import Reply, Sent, Task
from fedkin.train import SGD, Prox


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
