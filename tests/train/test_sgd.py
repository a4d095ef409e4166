"""Plain SGD: momentum rests between rounds, decay, and the rate of a round."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
import torch

from fedkin.parts import Train
from fedkin.train import SGD

from .quadratic import START, WAYS, F, ended, tensor, work


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


def test_velocity_rests_between_rounds() -> None:
    part = SGD(eta=0.05, momentum=0.9)
    carry = part.begin({"model": {"w": START}}, {})
    carry = part.step(carry, ({},), F, 0.05)
    kept, upload = part.end(carry, None, {}, work())
    assert kept == {}
    assert set(upload) == {"model"}
    again = part.begin(upload, kept)
    assert not again["velocity of model"]["w"].any()


def kin(part: type[Train]) -> list[type[Train]]:
    return [part, *(found for child in part.__subclasses__() for found in kin(child))]


@pytest.mark.parametrize("part", [part for part in kin(SGD) if part.__module__.startswith("fedkin.")])
def test_the_rate_of_a_round(part: Any) -> None:
    """eta_tau = eta / (1 + gamma tau), tau = t - 1, times rate_decay^(t-1)."""
    assert {field.name: field.default for field in fields(part)}["gamma"] == 0.0
    train = part(eta=0.03, rate_decay=0.9, gamma=0.5)
    wanted = [0.03, 0.03 * 0.9 / 1.5, 0.03 * 0.9**4 / 3.0]
    assert [train.rate(t) for t in (1, 2, 5)] == pytest.approx(wanted, rel=1e-12)
    assert part(eta=0.03).rate(7) == 0.03
    assert train.alone()["gamma"] == 0.5
