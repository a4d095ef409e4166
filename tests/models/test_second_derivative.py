"""Every network can be inverted: J(x) = sum_l || grad_theta F((x, y); w)_l - G_l ||^2 has a gradient with respect to x,
for many clients at once."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap

from fedkin.core.tree import Model
from fedkin.engines.network import Network
from fedkin.models import MODELS, build

CLIENTS, CLASSES, STEP = 3, 3, 1e-7
SMALL: dict[str, tuple[int, ...]] = {
    "mlr": (4,),
    "dnn:5": (4,),
    "mlp:5,4": (4,),
    "lenet": (1, 16, 16),
    "cnn": (1, 16, 16),
    "vgg11:4": (1, 12, 12),
    "resnet50:4": (1, 12, 12),
    "lstm:5,2,3": (6,),
}


def noise(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_every_network_is_here() -> None:
    assert {spec.split(":")[0] for spec in SMALL} == set(MODELS)


@pytest.mark.parametrize("spec", SMALL)
def test_the_second_derivative(spec: str) -> None:
    shape, tokens = SMALL[spec], 7 if spec.startswith("lstm") else None
    sample = torch.zeros(shape, dtype=torch.float64 if tokens is None else torch.uint8)
    network = Network(build(spec, shape, CLASSES, 0, tokens), sample, CLASSES, torch.float64)
    shape = network.module.embedded(shape) if tokens else shape  # type: ignore[operator]
    y, x = torch.arange(CLASSES), noise(CLIENTS, CLASSES, *shape, seed=1)
    targets = {name: 0.1 * noise(CLIENTS, *value.shape, seed=2) for name, value in network.model.items()}

    def objective(x: Tensor, target: Model) -> Tensor:
        found = network.grad(network.model, {"x": x, "y": y})
        return torch.stack([((found[name] - target[name]) ** 2).sum() for name in found]).sum()

    slopes = vmap(grad(objective))(x, targets)
    assert slopes.flatten(1).norm(dim=1).min() > 1e-4
    for seed in (3, 4):
        towards = noise(*x.shape, seed=seed)
        ahead, behind = (vmap(objective)(x + step * towards, targets) for step in (STEP, -STEP))
        torch.testing.assert_close(
            (slopes * towards).flatten(1).sum(1), (ahead - behind) / (2 * STEP), rtol=1e-5, atol=1e-7
        )
    each = [grad(objective)(x[k], {name: value[k] for name, value in targets.items()}) for k in range(CLIENTS)]
    torch.testing.assert_close(slopes, torch.stack(each))
