"""pFedMe's client: theta inside the Moreau envelope around w; w is uploaded, theta is what a client is judged by."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small import composed

from fedkin import evaluate
from fedkin.train import Moreau

from .quadratic import START, F, declared, fused, work


def ended(part: Moreau, steps: int) -> tuple[Any, Any]:
    sent: Any = {"model": {"w": START}}
    carry = part.begin(sent, part.slots(sent["model"], own=False))
    for _ in range(steps):
        carry = part.step(carry, ({},), F, part.eta)
    return part.end(carry, sent, {}, work())


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_many_inner_steps_are_the_proximal_point(decay: float) -> None:
    """theta is the minimum of f + lam/2 (theta - w)^2 + mu/2 theta^2, and w moves by eta lam (w - theta)."""
    mine, upload = ended(Moreau(eta=0.05, eta_p=0.1, lam=2.0, K=2000, weight_decay=decay), 1)
    theta = (F.a * F.b + 2.0 * START) / (F.a + 2.0 + decay)
    torch.testing.assert_close(mine["theta"]["w"], theta)
    torch.testing.assert_close(mine["model"]["w"], START - 0.05 * 2.0 * (START - theta))
    assert set(upload) == {"model"}
    assert torch.equal(upload["model"]["w"], mine["model"]["w"])


def test_in_place_w_follows_theta_as_declared() -> None:
    part = Moreau(eta=0.2, eta_p=0.1, lam=2.0, K=3, weight_decay=0.1)
    sent: Any = {"model": {"w": START}}
    one, other = (way(part, sent, F, 4, part.slots(sent["model"], own=False)) for way in (declared, fused))
    for name in ("theta", "model"):
        torch.testing.assert_close(one[name]["w"], other[name]["w"])
        assert not torch.allclose(one[name]["w"], START)


def test_many_steps_reach_the_minimum_of_f() -> None:
    """The envelope has the minimum of f, so both models end there; without the pull's gradient w would stay."""
    mine, _ = ended(Moreau(eta=0.2, eta_p=0.1, lam=2.0, K=20), 500)
    torch.testing.assert_close(mine["model"]["w"], F.b)
    torch.testing.assert_close(mine["theta"]["w"], F.b)


def test_a_client_is_judged_by_theta_and_w_is_scored_beside_it(begin: Any) -> None:
    part = Moreau(eta=0.05, eta_p=0.1, lam=3.0, K=3, steps=3, batch=4)
    run = begin(composed(part, trains="everyone", receives="everyone"))
    run.round()
    slots, judged = run.engine.slots.read(torch.arange(6)), run.judged()
    for name, value in judged.items():
        assert torch.equal(value, slots["theta"][name])
        assert not torch.allclose(value, slots["model"][name], atol=1e-6)
    found = evaluate.score_models(run.method, run.task, run.engine, run.state)
    assert set(found) == {"global", "post", "post-w"}
    for kind, slot in (("post", "theta"), ("post-w", "model")):
        direct = run.engine.score(slots[slot], torch.arange(6), "test")
        assert torch.equal(found[kind].loss, direct.loss)


def test_it_begins_at_what_was_sent_or_at_its_own_w() -> None:
    part = Moreau()
    mine: Any = {"model": {"w": F.a}, "theta": {"w": F.b}}
    for sent, w in (({"model": {"w": START}}, START), (None, F.a), ({}, F.a)):
        carry = part.begin(sent, mine)
        assert carry["model"]["w"] is carry["theta"]["w"] is w
    assert part.personal_model(None, mine, {}, F) is mine["theta"]
