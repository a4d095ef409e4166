"""How much memory a network takes for a sample, and that scoring keeps to it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fedkin.collaborate import Mean
from fedkin.data.federation import Index
from fedkin.engines import Plain, Simulation, Stacked, scoring
from fedkin.engines.footprint import Footprint
from fedkin.engines.network import Network
from fedkin.keep import Everyone
from fedkin.models import build
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import SGD

NUMBER = 4  # bytes


def test_what_is_alive_counts_once() -> None:
    x = torch.ones(100)
    with Footprint([x]) as found:
        a = x + 1  # 100
        b = a.view(10, 10).t()[2:]  # a view
        c = torch.cat([b.flatten(), x])  # 180 beside a
        del a, b
        d = c[:20].clone()  # 20 beside c
    assert found.most == NUMBER * (100 + 80 + 180)  # flatten copies the 80
    assert d.sum() == 40


def test_views_of_what_was_there_are_free() -> None:
    x = torch.ones(100)
    with Footprint([x]) as found:
        y = x.reshape(10, 10)[3:].t()
    assert y.shape == (10, 7)
    assert found.most == 0


@pytest.mark.parametrize(
    ("spec", "shape", "numbers"),
    [
        ("mlr", (60,), 60 + 10),
        ("mlr", (1, 28, 28), 784 + 10),
        ("dnn:100", (60,), 60 + 200),  # before and after ReLU
        ("cnn", (1, 28, 28), 784 + 2 * 8 * 24 * 24),
        ("vgg11:8", (1, 28, 28), 784 + 2 * 8 * 28 * 28),
    ],
)
@pytest.mark.parametrize("batch", [1, 7])
def test_of_networks(spec: str, shape: tuple[int, ...], numbers: int, batch: int) -> None:
    assert Network(build(spec, shape, 10, 0), torch.zeros(shape), batch).footprint == NUMBER * numbers


def test_the_type_of_numbers_counts() -> None:
    assert Network(build("mlr", (60,), 10, 0), torch.zeros(60).double(), 3, torch.float64).footprint == 2 * NUMBER * 70


def test_of_an_lstm() -> None:
    """What enters the gates at all times is the most of it, and is there while the states are computed."""
    length, hidden = 40, 16
    network = Network(build(f"lstm:{hidden},1,8", (length,), 81, 0, 81), torch.ones(length, dtype=torch.uint8), 5)
    gates = length * 4 * hidden * NUMBER
    assert gates < network.footprint < 3 * gates


class Wide(nn.Module):
    """1000 numbers between 5 and 3; not a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(5, 1000), nn.Linear(1000, 3)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(self.first(x))
        return found


@pytest.mark.parametrize("kind", [Plain, Stacked])
@pytest.mark.parametrize(
    "module", [Wide(), nn.Sequential(nn.Linear(5, 1000), nn.Linear(1000, 3))], ids=["own", "known"]
)
def test_scoring_keeps_to_what_it_may_hold(
    federate: Any, start: Any, monkeypatch: pytest.MonkeyPatch, kind: type[Simulation], module: nn.Module
) -> None:
    """Samples at once take no more than the bound, nor do samples and the models of their clients together."""
    federation = federate((4, 4, 5), test=(9, 6, 5), common=120)
    method = Method("fedavg", Uniform(count=3), SGD(steps=1, batch=2), Everyone(), Mean())
    engine, _, _ = start(kind, method, federation, module)
    weights = NUMBER * engine.network.parameters
    monkeypatch.setattr(scoring, "HELD", 5 * (weights + 9 * engine.network.footprint) // 2)
    blocks: list[int] = []
    whole = scoring.picked

    def counted(values: Tensor, rows: Tensor) -> Tensor:
        blocks.append(rows.numel() * engine.network.footprint)
        if rows.dim() == 2:
            assert len(rows) * weights + blocks[-1] <= scoring.HELD
        return whole(values, rows)

    monkeypatch.setattr(scoring, "picked", counted)
    models = {name: value.expand(3, *value.shape) for name, value in engine.network.model.items()}
    engine.score(models, torch.arange(3), "test")
    engine.score_one(engine.network.model, "test")
    with Footprint([*engine.network.model.values(), *engine.network.module.parameters()]) as found:
        engine.scoring.rows(engine.network.model, Index.of([torch.arange(150)]))
    assert max(blocks) <= scoring.HELD
    assert found.most <= 1.5 * scoring.HELD
