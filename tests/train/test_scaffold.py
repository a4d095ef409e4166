"""SCAFFOLD's control variates on two quadratics a_i / 2 (w - b_i)^2, and where it must be plain SGD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from small import composed, equal
from torch import Tensor

from fedkin.collaborate import Control, Mean
from fedkin.core import tree
from fedkin.core.tree import Batch, Message
from fedkin.messages import Reply, Task, Work
from fedkin.train import SGD, Scaffold
from fedkin.training import Descent

from .quadratic import Quadratic, work


def number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


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


FS = (Quadratic(number(1.0), number(0.0)), Quadratic(number(4.0), number(1.0)))
MINIMUM = (1.0 * 0.0 + 4.0 * 1.0) / (1.0 + 4.0)
STEPS, ETA = 5, 0.05


def trained(part: SGD, f: Any, steps: int, sent: Message, mine: Message) -> tuple[Message, Message]:
    carry = part.begin(sent, mine)
    for _ in range(steps):
        carry = part.step(carry, ({},), f, part.eta)
    return part.end(carry, sent, mine, work(steps, part.eta))


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
    slopes = [float(f.a * (MINIMUM - f.b)) for f in FS]
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
    worth = sum(momentum**j for k in range(steps) for j in range(k + 1))  # every velocity holds all steps before it
    torch.testing.assert_close(moved, torch.full_like(moved, 0.1 * worth), rtol=1e-10, atol=0.0)


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_one_client_is_sgd(begin: Any, momentum: float) -> None:
    """N = 1, eta_g = 1: c is c_i, and the correction is nothing."""
    how: dict[str, Any] = {"eta": 0.2, "steps": 3, "batch": 4, "momentum": momentum}
    runs = [
        begin(composed(Scaffold(**how), collaborate=Control()), sizes=(9,)),
        begin(composed(SGD(**how)), sizes=(9,)),
    ]
    for run in runs:
        for _ in range(4):
            run.round()
    assert runs[0].state.collaborate["control"]["2.bias"].abs().max() > 1e-3
    equal(runs[0].model, runs[1].model)


def test_nobody_kept_changes_nothing() -> None:
    task = Task(2, torch.tensor([5, 5]), 1, {"w": number(3.0)}, lambda model, batch: number(0.0))
    slot = Control().init(task)
    sent, slot = Control().send(slot, task, torch.arange(2), None)
    reply = Reply(torch.arange(2), {n: {"w": torch.ones(2)} for n in ("model", "control")}, {"size": torch.ones(2)})
    after = Control().receive(slot, task, sent, reply, torch.zeros(2))
    assert (float(after["model"]["w"]), float(after["control"]["w"])) == (3.0, 0.0)
    half = Control().receive(slot, task, sent, reply, torch.tensor([1.0, 0.0]))
    assert (float(half["model"]["w"]), float(half["control"]["w"])) == (1.0, 0.5)
