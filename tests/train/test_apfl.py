"""APFL's client: the weight alpha of its own model, which it learns and keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from small import composed
from torch import Tensor

from fedkin.train import APFL

from .quadratic import Quadratic, work

A, B, W, V = (torch.tensor(value, dtype=torch.float64) for value in (2.0, 1.0, 3.0, 0.5))
PART = APFL(eta=0.1, alpha=0.4)


def alphas(part: APFL, steps: int, v: Tensor = V) -> list[float]:
    """alpha after each step of a round on a quadratic."""
    mine = part.slots({"w": W}, own=False) | {"own": {"w": v}}
    carry, found = part.begin({"model": {"w": W}}, mine), []
    for _ in range(steps):
        carry = part.step(carry, ({},), Quadratic(A, B), part.eta)
        found.append(float(carry["mix"]["alpha"]))
    assert float(part.end(carry, None, mine, work())[0]["mix"]["alpha"]) == found[-1]
    return found


def test_alpha_descends_the_loss_of_the_mixture() -> None:
    """alpha - eta (<v - w, g(alpha v + (1 - alpha) w)> + penalty alpha)."""
    slope = (V - W) * A * (0.4 * V + 0.6 * W - B)
    assert alphas(PART, 1) == pytest.approx([float(0.4 - 0.1 * slope)])
    assert alphas(replace(PART, penalty=0.5), 1) == pytest.approx([float(0.4 - 0.1 * (slope + 0.5 * 0.4))])


def test_alpha_learns_when_it_may() -> None:
    first, every, never = (alphas(replace(PART, adapt=adapt), 3) for adapt in ("first", "every", "never"))
    assert first[0] == first[1] == first[2] == every[0] != 0.4
    assert len(set(every)) == 3
    assert never == [0.4] * 3


@pytest.mark.parametrize(("v", "wanted"), [(-90.0, 0.0), (90.0, 0.0), (1.0, 1.0)])
def test_alpha_stays_between_0_and_1(v: float, wanted: float) -> None:
    """A model far worse than the common one loses its weight, and a perfect one gets all."""
    part = replace(PART, alpha=0.9, eta=1.0) if wanted else PART
    assert alphas(part, 1, torch.tensor(v, dtype=torch.float64)) == [wanted]


@pytest.mark.parametrize("mix", ["parameter", "output"])
def test_every_client_keeps_its_alpha_from_round_to_round(begin: Any, mix: Any) -> None:
    run = begin(composed(APFL(eta=0.5, steps=2, batch=4, mix=mix, adapt="every")))
    before, ever = torch.full((6,), 0.5, dtype=torch.float64), torch.zeros(6, dtype=torch.bool)
    for _ in range(3):
        log = run.round()
        ever[log.selected] = True
        mine = run.engine.slots.read(torch.arange(6))["mix"]
        moved = mine["alpha"] != before
        out = ~torch.isin(torch.arange(6), log.selected)
        assert not moved[out].any()
        assert mine["trained"].bool().tolist() == ever.tolist()
        assert log.traffic.uploads == 4  # alpha stays at home
        before = mine["alpha"].clone()
    assert (before[ever] != 0.5).any()
