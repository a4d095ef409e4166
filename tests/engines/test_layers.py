"""Each layer written out for many clients is that layer, client by client: forward, and backward."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from fedkin.engines import layers
from fedkin.engines.layers import KeyedDropout
from fedkin.engines.network import MASK, Network, StackedObjective

CLIENTS, BATCH = 3, 4
IMAGE, VECTOR = (8, 7, 6), (5,)

EXAMPLES: list[tuple[nn.Module, tuple[int, ...]]] = [
    (nn.Linear(5, 4), VECTOR),
    (nn.Linear(6, 4), (2, 6)),
    (nn.Linear(6, 4), IMAGE),
    (nn.Conv2d(8, 16, 3), IMAGE),
    (nn.Conv2d(8, 8, (3, 2), stride=(2, 1), padding=(1, 0)), IMAGE),
    (nn.Conv2d(8, 16, 2, dilation=2), IMAGE),
    (nn.Conv2d(8, 6, 3, padding=1), IMAGE),
    (nn.Conv2d(8, 16, 3, groups=4), IMAGE),
    (nn.Conv2d(1, 8, 3), (1, 5, 5)),
    (nn.Conv2d(3, 8, 3), (3, 5, 5)),
    (nn.Flatten(), IMAGE),
    (nn.Flatten(), VECTOR),
    (nn.MaxPool2d(2), IMAGE),
    (nn.MaxPool2d(3, stride=2, padding=1), IMAGE),
    (nn.AvgPool2d(2), IMAGE),
    (nn.AdaptiveAvgPool2d((2, 3)), IMAGE),
    (nn.GroupNorm(2, 8), IMAGE),
    (nn.GroupNorm(4, 8, eps=0.1), IMAGE),
    (nn.GroupNorm(1, 5), VECTOR),
    (nn.ReLU(), VECTOR),
    (nn.Tanh(), IMAGE),
    (nn.Sigmoid(), VECTOR),
    (nn.Identity(), VECTOR),
    (nn.GELU(), VECTOR),
    (nn.LeakyReLU(0.3), IMAGE),
    (nn.ELU(0.5), VECTOR),
]
UNKNOWN: list[tuple[nn.Module, tuple[int, ...]]] = [
    (nn.Linear(5, 4, bias=False), VECTOR),
    (nn.Conv2d(8, 8, 3, padding="same"), IMAGE),
    (nn.Conv2d(8, 8, 3, padding=1, padding_mode="circular"), IMAGE),
    (nn.Conv2d(8, 8, 3, bias=False), IMAGE),
    (nn.Flatten(2), IMAGE),
    (nn.GroupNorm(2, 8, affine=False), IMAGE),
    (nn.LayerNorm(5), VECTOR),
    (nn.Softplus(), VECTOR),
]


def noise(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64)


def own_weights(module: nn.Module) -> dict[str, Tensor]:
    return {name: noise(CLIENTS, *value.shape) for name, value in module.named_parameters()}


def label(example: Any) -> str:
    return str(example).replace(" ", "") if isinstance(example, nn.Module) else str(len(example))


@pytest.mark.parametrize(("layer", "shape"), EXAMPLES, ids=label)
@pytest.mark.parametrize("clients", [CLIENTS, 1])
def test_a_known_layer(layer: nn.Module, shape: tuple[int, ...], clients: int) -> None:
    module = nn.Sequential(layer).double()
    stacked = {name: value[:clients].requires_grad_() for name, value in own_weights(module).items()}
    x = noise(CLIENTS, BATCH, *shape)[:clients].requires_grad_()
    names = layers.supported_layers(module, set(stacked))
    assert names is not None
    found = layers.forward(names, stacked, x, {})
    lifted = vmap(lambda model, some: functional_call(module, model, (some,)))(stacked, x)
    inputs = [x, *stacked.values()]
    weight = noise(*lifted.shape)
    slopes = torch.autograd.grad((found * weight).sum(), inputs)
    for client in range(clients):
        one = {name: value[client] for name, value in stacked.items()}
        torch.testing.assert_close(found[client], functional_call(module, one, (x[client],)))
    torch.testing.assert_close(found, lifted)
    torch.testing.assert_close(slopes, torch.autograd.grad((lifted * weight).sum(), inputs))


def test_every_known_kind_has_an_example() -> None:
    kinds = {type(layer) for layer, _ in EXAMPLES}
    assert kinds == {nn.Linear, nn.Conv2d, nn.GroupNorm, nn.Flatten, *layers.SAMPLEWISE, *layers.POOLS}


@pytest.mark.parametrize(("layer", "shape"), UNKNOWN, ids=label)
def test_what_is_not_known_goes_through_vmap(layer: nn.Module, shape: tuple[int, ...]) -> None:
    module = nn.Sequential(layer, nn.Flatten(), nn.LazyLinear(3)).double()
    with torch.random.fork_rng(devices=[]):
        module(noise(1, *shape))
        network = Network(module, noise(*shape), BATCH)
    assert network.layers is None
    stacked = {name: noise(CLIENTS, *value.shape) for name, value in network.model.items()}
    batch = {"x": noise(CLIENTS, BATCH, *shape), "y": torch.arange(CLIENTS * BATCH).reshape(CLIENTS, BATCH) % 3}
    agrees(network, stacked, batch)


def agrees(network: Network, stacked: dict[str, Tensor], batch: dict[str, Tensor]) -> None:
    objective = StackedObjective(network)
    losses, slopes = objective.loss(stacked, batch), objective.grad(stacked, batch)
    logits = network.stacked_logits(stacked, batch)
    for client in range(CLIENTS):
        one = {name: value[client] for name, value in stacked.items()}
        some = {name: value[client] for name, value in batch.items()}
        torch.testing.assert_close(logits[client], network.logits(one, some))
        torch.testing.assert_close(losses[client], network.loss(one, some))
        torch.testing.assert_close({name: value[client] for name, value in slopes.items()}, network.grad(one, some))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_the_objective_of_many_is_that_of_each(weighted: bool, masked: bool) -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(6, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 3)).double()
    network = Network(module, noise(2, 3), BATCH)
    assert network.layers is not None
    stacked = {name: noise(CLIENTS, *value.shape) for name, value in network.model.items()}
    batch = {"x": noise(CLIENTS, BATCH, 2, 3), "y": torch.arange(CLIENTS * BATCH).reshape(CLIENTS, BATCH) % 3}
    if weighted:
        batch["weight"] = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], dtype=torch.float64)
    if masked:
        batch[MASK + "2"] = (noise(CLIENTS, BATCH, 8) > 0).double() * 2
    agrees(network, stacked, batch)


class Spare(nn.Module):
    """Has a layer that it does not use."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.spare = nn.Linear(5, 3), nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.used(x)
        return found


def test_what_a_module_does_not_use_has_no_gradient() -> None:
    network = Network(Spare().double(), noise(5), BATCH)
    stacked = {name: noise(CLIENTS, *value.shape) for name, value in network.model.items()}
    batch = {"x": noise(CLIENTS, BATCH, 5), "y": torch.arange(CLIENTS * BATCH).reshape(CLIENTS, BATCH) % 3}
    agrees(network, stacked, batch)
    assert not StackedObjective(network).grad(stacked, batch)["spare.weight"].any()


def test_padding_has_no_gradient() -> None:
    """A short batch is the mean over its real samples alone, whatever stands in the rest."""
    network = Network(nn.Sequential(nn.Linear(5, 3)).double(), noise(5), BATCH)
    x, y = noise(BATCH, 5), torch.tensor([0, 1, 2, 0])
    weight = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    padded = network.grad(network.model, {"x": x, "y": y, "weight": weight})
    torch.testing.assert_close(padded, network.grad(network.model, {"x": x[:2], "y": y[:2]}))
    other = network.grad(network.model, {"x": x * torch.tensor([[1], [1], [9], [9]]), "y": y, "weight": weight})
    torch.testing.assert_close(padded, other)


def test_a_mask_multiplies() -> None:
    layer = KeyedDropout(0.5)
    x = noise(2, 3)
    assert torch.equal(layer(x), x)
    mask = torch.tensor([[0.0, 2.0, 2.0], [2.0, 0.0, 0.0]], dtype=torch.float64)
    assert torch.equal(functional_call(layer, {"mask": mask}, (x,)), x * mask)
