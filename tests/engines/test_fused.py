"""Sequences of layers without autograd: the same gradients and steps as autograd gives, client by client."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fedkin.core import tree
from fedkin.core.tree import Batch, Message, Model
from fedkin.engines import Stacked
from fedkin.engines.fused import MASK
from fedkin.engines.network import Network, StackedObjective
from fedkin.messages import Sent
from fedkin.models import build
from fedkin.train import SGD
from fedkin.training import Descent

CLIENTS, BATCH, IMAGE = 3, 4, (2, 3)
SEQUENCES: dict[str, list[nn.Module]] = {
    "one": [nn.Linear(6, 3)],
    "two": [nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)],
    "three": [nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)],
    "relu first and last": [nn.ReLU(), nn.Linear(6, 5), nn.ReLU(), nn.ReLU(), nn.Linear(5, 3), nn.ReLU()],
    "no relu": [nn.Linear(6, 5), nn.Flatten(), nn.Linear(5, 3)],
    "nested": [nn.Sequential(nn.Linear(6, 5), nn.ReLU()), nn.Sequential(nn.Linear(5, 3))],
}
DESCENTS = {
    "plain": Descent(),
    "decay": Descent(decay=0.3),
    "pull": Descent(towards="centre", pull=0.7),
    "plus and minus": Descent(plus=("centre",), minus=("other",)),
    "itself": Descent(plus=("model", "centre", "centre"), minus=("model", "model")),
    "everything": Descent("model", "centre", 0.7, ("other",), ("centre",), decay=0.3, speed=2.0),
}


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def network(name: str) -> Network:
    found = Network(nn.Sequential(nn.Flatten(), *SEQUENCES[name]).double(), noise(*IMAGE), BATCH)
    assert found.fused is not None
    return found


def models(like: Model, seed: int) -> Model:
    return {name: noise(CLIENTS, *value.shape, seed=seed + i) for i, (name, value) in enumerate(like.items())}


def some(weighted: bool, seed: int = 0) -> Batch:
    batch = {"x": noise(CLIENTS, BATCH, *IMAGE, seed=seed), "y": torch.arange(CLIENTS * BATCH).view(CLIENTS, BATCH) % 3}
    if weighted:
        batch["weight"] = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], dtype=torch.float64)
    return batch


def same(found: Model, wanted: Model) -> None:
    assert list(found) == list(wanted)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_is_autograds(monkeypatch: pytest.MonkeyPatch, name: str, weighted: bool) -> None:
    net, batch = network(name), some(weighted)
    model = models(net.model, 7)
    with monkeypatch.context() as patch:
        patch.setattr(torch.autograd, "grad", None)
        found = StackedObjective(net).grad(model, batch)
    for client in range(CLIENTS):
        same(tree.row(found, client), net.grad(tree.row(model, client), tree.row(batch, client)))
    net.fused = None
    same(found, StackedObjective(net).grad(model, batch))


@pytest.mark.parametrize("name", ["one", "two", "three"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.6])
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", DESCENTS)
def test_a_step_in_place_is_the_declared_one(
    name: str, weighted: bool, momentum: float, fused: bool, kind: str
) -> None:
    """Two steps, so that the velocity is not at rest; both with and without autograd."""
    net, descent = network(name), replace(DESCENTS[kind], momentum=momentum)
    start = descent.begin({key: models(net.model, seed) for key, seed in (("model", 1), ("centre", 20), ("other", 40))})
    ours: Message = tree.each(lambda model: tree.mapped(torch.clone, model), start)
    if not fused:
        net.fused = None
    engine: Any = SimpleNamespace(stacked_objective=StackedObjective(net))
    for step in range(2):
        Stacked.descend(engine, descent, descent.terms(), ours, some(weighted, step), 0.1)
    for client in range(CLIENTS):
        wanted = tree.each(lambda model, client=client: tree.row(model, client), start)
        for step in range(2):
            wanted = descent.step(wanted, tree.row(some(weighted, step), client), net, 0.1)
        assert set(ours) == set(wanted)
        for key, model in wanted.items():
            same(tree.row(ours[key], client), model)


IMAGES: dict[str, tuple[list[nn.Module], int]] = {  # layers, and how many vectors follow from 2 x 9 x 7 pixels
    "unfolded": ([nn.Conv2d(2, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 5, 2, padding=1), nn.ReLU()], 60),
    "looped": ([nn.Conv2d(2, 20, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 18, 2, padding=1), nn.ReLU()], 216),
    "uneven": (
        [nn.Conv2d(2, 3, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2)), nn.MaxPool2d(3, 2, 1), nn.ReLU()],
        45,
    ),
    "dropped": ([nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Dropout(0.5), nn.MaxPool2d(2, ceil_mode=True)], 48),
    "pool only": ([nn.MaxPool2d(2)], 24),
}


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [3, 20])
def test_convolutions_have_the_gradients_of_autograd(name: str, weighted: bool, outputs: int) -> None:
    """Pixels are rounded, so that windows of a pool have ties; the first of them has the gradient, as in torch."""
    layers, width = IMAGES[name]
    head = [nn.Flatten(), nn.Linear(width, 6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, outputs)]
    net = Network(nn.Sequential(*layers, *head).double(), noise(2, 9, 7), BATCH)
    assert net.fused is not None
    model = models(net.model, 7)
    batch = some(weighted) | {"x": noise(CLIENTS, BATCH, 2, 9, 7).round()}
    for i, (layer, shape) in enumerate(net.masks.items()):
        batch[MASK + layer] = 2.0 * (noise(CLIENTS, BATCH, *shape[1:], seed=i) > 0)
    found = net.fused.grad(model, batch)
    for client in range(CLIENTS):
        same(tree.row(found, client), net.grad(tree.row(model, client), tree.row(batch, client)))
    changed = tree.mapped(torch.clone, model)
    net.fused.add_grad(changed, 0.9, -0.1, changed, batch)
    same(changed, tree.mapped(lambda value, g: 0.9 * value - 0.1 * g, model, found))


def test_terms_are_summed_by_name() -> None:
    assert Descent().terms() == {}
    assert DESCENTS["everything"].terms() == {"model": 1.0, "centre": -1.7, "other": 1.0}
    assert DESCENTS["itself"].terms() == {"model": -1.0, "centre": 2.0}


@pytest.mark.parametrize(
    ("model", "shape", "taken"),
    [
        ("mlr", (6,), True),
        ("mlr", (1, 16, 16), True),
        ("dnn:5", (6,), True),
        ("mlp:5,4", (1, 16, 16), True),
        ("cnn", (1, 16, 16), True),
        ("lenet", (1, 16, 16), True),
        ("vgg11:4", (1, 16, 16), False),
    ],
)
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_who_trains_without_a_gradient(
    federate: Any, monkeypatch: pytest.MonkeyPatch, model: str, shape: tuple[int, ...], taken: bool, momentum: float
) -> None:
    part = SGD(steps=2, batch=4, momentum=momentum)
    engine = Stacked(federate((5, 9, 2), shape=shape), build(model, shape, 3, 0), part, 0)
    sent = Sent(torch.arange(3), shared={"model": engine.network.model})
    asked, real = [], StackedObjective.grad
    monkeypatch.setattr(StackedObjective, "grad", lambda *given: asked.append(1) or real(*given))
    reply = engine.train(part, sent, sent.ids, 1)
    assert len(asked) == (0 if taken else 2)
    for name, value in reply.upload["model"].items():
        assert not torch.equal(value, engine.network.model[name].expand_as(value))


def test_what_does_not_fit() -> None:
    """Other layers, layers that stand on matrices, and layers without a bias."""
    for module, shape in (
        (nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3)), (6,)),
        (nn.Sequential(nn.Linear(3, 4), nn.Flatten(), nn.Linear(8, 3)), IMAGE),
        (nn.Sequential(nn.Linear(6, 3, bias=False)), (6,)),
    ):
        assert Network(module.double(), noise(*shape), BATCH).fused is None
    assert Network(nn.Sequential(nn.Linear(6, 3)).double(), noise(6), BATCH).fused is not None
