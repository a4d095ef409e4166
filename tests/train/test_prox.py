"""The proximal pull has a gradient, and its centre is the last model that was sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from fedkin.train import SGD, Prox

from .quadratic import START, WAYS, F, ended, tensor, work


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


def test_a_client_with_its_own_model_keeps_what_it_was_sent_as_its_centre() -> None:
    mine = {"model": {"w": tensor(1.0)}, "centre": {"w": tensor(2.0)}}
    sent = {"model": {"w": tensor(3.0)}}
    kept, _ = Prox().end(Prox().begin(sent, mine), sent, mine, work())
    assert kept["centre"] is sent["model"]
    assert Prox().end(Prox().begin(sent, {}), sent, {}, work())[0] == {}
