"""Per-FedAvg's client: several batches a step, the Hessian-free term, and the training batch it is judged by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from small import CLASSES, SIZES, composed, equal, seeded
from torch import nn

from fedkin.core import tree
from fedkin.train import MAML

from .quadratic import START, F

BATCHES = {"FO": 2, "HF": 3}
ORDERS = pytest.mark.parametrize("order", BATCHES)
STEPS = MAML(alpha=0.3, eta=0.1, steps=3, batch=4)
EPOCHS = replace(STEPS, steps=None, epochs=2)


def test_a_step_on_a_quadratic() -> None:
    """g(w~) = a (1 - alpha a) (w - b), and the Hessian times it is a times that: HF has the factor twice."""
    slope = F.a * (1 - 0.3 * F.a) * (START - F.b)
    for order, factor in (("FO", torch.ones_like(F.a)), ("HF", 1 - 0.3 * F.a)):
        for i in range(3):  # one client at a time, because the length of v is that of one model
            f = type(F)(F.a[i], F.b[i])
            found = replace(STEPS, order=order).step({"model": {"w": START[i]}}, ({}, {}, {}), f, 0.1)  # type: ignore
            torch.testing.assert_close(found["model"]["w"], START[i] - 0.1 * factor[i] * slope[i])


def test_at_a_minimum_the_hessian_free_step_stays() -> None:
    """A gradient of no length has no direction to look along."""
    found = replace(STEPS, order="HF").step({"model": {"w": F.b[0]}}, ({}, {}, {}), type(F)(F.a[0], F.b[0]), 0.1)
    assert torch.equal(found["model"]["w"], F.b[0])


@ORDERS
@pytest.mark.parametrize("how", [STEPS, EPOCHS], ids=["steps", "epochs"])
def test_every_step_has_its_own_batches(begin: Any, order: Any, how: MAML) -> None:
    part, per, sizes = replace(how, order=order), BATCHES[order], (5, 7, 25, 10, 12, 30)
    run = begin(composed(part), sizes=sizes)
    reply = run.reply(torch.arange(6))
    for client, size in enumerate(sizes):
        batches = run.batches(1, client)
        wanted = 3 * per if how is STEPS else 2 * -(-size // 4) * per
        assert len(batches) == wanted
        assert reply.report["steps"][client] == wanted // per
        carry = {"model": run.model}
        for k in range(0, wanted, per):
            carry = part.step(carry, tuple(batches[k : k + per]), run.engine.network, 0.1)
        equal(tree.row(reply.upload["model"], client), carry["model"])


@ORDERS
def test_an_epoch_has_a_step_for_every_batch(begin: Any, order: Any) -> None:
    """As many as with one batch a step, and every batch of every step has samples."""
    run = begin(composed(replace(STEPS, order=order, steps=None, epochs=1)))
    for client in range(6):
        assert all(batch.get("weight", torch.ones(1)).sum() > 0 for batch in run.batches(1, client))
    assert run.reply(torch.arange(6)).report["steps"].tolist() == [-(-size // 4) for size in SIZES]


@ORDERS
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_a_client_is_judged_after_a_step_on_a_training_batch(begin: Any, order: Any, dropout: float) -> None:
    """It is the first batch of the round, and nothing of it is dropped."""
    module = seeded(lambda: nn.Sequential(nn.Linear(5, 4), nn.Dropout(dropout), nn.Linear(4, CLASSES)))
    run = begin(composed(replace(STEPS, order=order)), module=module)
    run.round()
    run.round()
    judged = run.judged()
    for client in range(6):
        batch = {key: value for key, value in run.batches(2, client)[0].items() if not key.startswith("mask of ")}
        equal(tree.row(judged, client), tree.added(run.model, run.engine.network.grad(run.model, batch), -0.3))
    assert not run.method.finetunes


@ORDERS
def test_test_samples_are_never_used(begin: Any, federate: Any, order: Any) -> None:
    """With test samples that are not numbers and have other labels, every client is judged by the same model."""
    federation = federate(SIZES)
    x, y = federation.x.clone(), federation.y.clone()
    x[federation.test.rows] = float("nan")
    y[federation.test.rows] = (y[federation.test.rows] + 1) % CLASSES
    found = []
    for data in (federation, replace(federation, x=x, y=y)):
        run = begin(composed(replace(STEPS, order=order)), federation=data)
        run.round()
        found.append(run.judged())
    assert all(value.isfinite().all() and torch.equal(value, found[1][name]) for name, value in found[0].items())
