"""The engines agree on networks of every kind: known layers, modules of one's own, dropout, text, and deep ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from seen import Nearer, agree, played
from small import composed, learnable, seeded
from torch import Tensor, nn

import fedkin as fk
from fedkin.collaborate import Mean
from fedkin.engines import Plain, Simulation, Stacked
from fedkin.engines.layers import supported_layers
from fedkin.models import build
from fedkin.parts import Method
from fedkin.select import Uniform
from fedkin.train import MAML, SGD, Prox


class Residual(nn.Module):
    """Not a sequence, so it goes through vmap."""

    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.norm = nn.GroupNorm(2, 8)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.first(x))
        h = h + self.drop(torch.tanh(self.second(h)))
        return self.last(self.norm(h))


def sequence_with_dropout() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 16), nn.Dropout(0.2), nn.ReLU(), nn.Sequential(nn.Linear(16, 8), nn.Dropout(0.5)), nn.Linear(8, 3)
    )


def convolutions() -> nn.Module:
    """Grouped (1 -> 8, 8 -> 16), one by one (16 -> 6), and in groups of their own."""
    body = [nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.Tanh()]
    body += [nn.Conv2d(16, 6, 2, dilation=2), nn.Conv2d(6, 4, 1, groups=2), nn.AvgPool2d(3), nn.Flatten()]
    return nn.Sequential(*body, nn.Linear(4, 3))


def dropped_convolutions() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 8, 5), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(8 * 8 * 8, 3))


def partly_frozen() -> nn.Module:
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    module[0].weight.requires_grad_(False)
    return module


def tied() -> nn.Module:
    layer = nn.Linear(6, 6)
    return nn.Sequential(layer, nn.Tanh(), layer, nn.Linear(6, 3))


VECTOR, IMAGE = (6,), (1, 12, 12)
NETWORKS: dict[str, tuple[Any, tuple[int, ...], bool]] = {  # build, shape of a sample, whether layers.py knows it
    "residual": (Residual, VECTOR, False),
    "residual with dropout": (lambda: Residual(0.4), VECTOR, False),
    "dropout": (sequence_with_dropout, VECTOR, True),
    "convolutions": (convolutions, IMAGE, True),
    "convolutions with dropout": (dropped_convolutions, IMAGE, True),
    "partly frozen": (partly_frozen, VECTOR, False),
    "tied": (tied, VECTOR, False),
    "no bias": (lambda: nn.Sequential(nn.Linear(6, 8, bias=False), nn.ReLU(), nn.Linear(8, 3)), VECTOR, False),
}


PROX = Prox(eta=0.05, steps=None, epochs=1, batch=8, momentum=0.5, weight_decay=0.01, lam=0.5, rate_decay=0.9)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(federate: Any, start: Any, name: str) -> None:
    build, shape, direct = NETWORKS[name]
    method = Method("tried", Uniform(count=5), PROX, Nearer(), Mean())
    federation = federate((1, 3, 20, 9, 8, 17, 2), shape=shape)
    plain = played(start(Plain, method, federation, seeded(build)), method)
    for chunk in (1, 3, 7):
        begun = start(Stacked, method, federation, seeded(build), chunk=chunk)
        network = begun[0].network
        assert (supported_layers(network.module, set(network.model)) is not None) == direct
        agree(plain, played(begun, method))


# text, and deep networks


TRAINS = {
    "one model": composed(SGD(eta=0.05, steps=2, batch=5, momentum=0.5)),
    "by vmap": composed(MAML(alpha=0.01, eta=0.01, order="HF", steps=1, batch=5)),
    "inverted": fk.methods.pfedre(epochs=1, batch=5, iterations=3, eta=0.02),
}


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("lstm:6,2,4", "one model"),
        ("lstm:6,2,4", "by vmap"),
        ("lstm:6,1,4", "inverted"),
        ("vgg11:2", "one model"),
        ("vgg11:2", "by vmap"),
        ("vgg11:2", "inverted"),
        ("resnet50:2", "one model"),
    ],
)
def test_text_and_deep_networks(start: Any, spec: str, name: str) -> None:
    method, federation = TRAINS[name], learnable(spec.startswith("lstm"))

    def on(kind: type[Simulation], chunk: int) -> Any:
        module = build(spec, federation.shape, federation.classes, 0, federation.vocabulary)
        return played(start(kind, method, federation, module, chunk=chunk, dtype=torch.float64), method, 2)

    plain = on(Plain, 1)
    first = build(spec, federation.shape, federation.classes, 0, federation.vocabulary).double()
    for key, value in first.named_parameters():
        assert (plain.tensors[f"collaborate/model/{key}"] - value).norm() > 1e-6 * value.norm(), key
    agree(plain, on(Stacked, 2))
