"""About how long presets take: every one can be told, and more work takes longer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_preset import experiment, tiny

import fedkin as fk
from fedkin import presets
from fedkin.reproduce import cost


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of ten billion operations a second, and ten microseconds for the smallest step."""
    monkeypatch.setattr(cost, "rate", lambda model: 1e10)
    monkeypatch.setattr(cost, "least_step", lambda: 1e-5)


@pytest.mark.parametrize("name", presets.PRESETS)
def test_every_preset_has_a_cost_and_its_full_scale_costs_more(name: str) -> None:
    small, full = (cost.seconds(presets.named(name, scale)) for scale in ("small", "full"))
    assert 0 < small <= full


def test_more_work_takes_longer() -> None:
    one = replace(experiment("one", 0.05), rounds=1000, model="mlp:500,500")
    base = cost.of_run(one)
    assert cost.of_run(replace(one, rounds=2000)) > 1.8 * base
    assert cost.of_run(replace(one, method=fk.methods.pfedme(count=3))) > 2 * base, "five steps for each batch"
    assert cost.of_run(replace(one, model="mlp:2000,2000")) > 2 * base
    assert cost.seconds(tiny()) > cost.seconds(tiny().shortened(seeds=1))


def test_the_speed_of_this_machine_is_measured() -> None:
    assert 1e6 < cost.measured("mlr", (784,)) < 1e13
    assert 0 < cost.spent("mlr", (60,), 5, 2) < 60
