"""VGG11 and ResNet-50 in full size, without computing anything, and small ones that compute."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fedkin.engines.network import Network
from fedkin.models import build
from fedkin.models.convolutional import group_norm

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)


def ghost(spec: str, shape: tuple[int, ...], classes: int, vocabulary: int | None = None) -> Any:
    with torch.device("meta"):
        return build(spec, shape, classes, 0, vocabulary)


@pytest.mark.parametrize(
    ("spec", "shape", "classes", "parameters"),
    [
        ("vgg11", CIFAR, 10, 9_231_114),
        ("vgg11", CIFAR, 100, 9_277_284),
        ("vgg11", MNIST, 47, 9_248_943),
        ("resnet50", CIFAR, 10, 23_520_842),  # as usual for CIFAR-10
        ("resnet50", MNIST, 47, 23_595_503),
        ("lstm", (80,), 81, 818_137),
        ("lstm", (30,), 2, 1_161_002),
    ],
)
def test_parameters(spec: str, shape: tuple[int, ...], classes: int, parameters: int) -> None:
    vocabulary = {(80,): 81, (30,): 10_000}.get(shape)
    module = ghost(spec, shape, classes, vocabulary)
    assert sum(value.numel() for value in module.parameters()) == parameters
    kind = torch.float32 if vocabulary is None else torch.int16
    assert module(torch.empty(2, *shape, device="meta", dtype=kind)).shape == (2, classes)


def outputs(module: nn.Module, shape: tuple[int, ...], kinds: tuple[type[nn.Module], ...]) -> list[tuple[int, ...]]:
    """The shapes, of one sample, that layers of these kinds give, in order."""
    found: list[tuple[int, ...]] = []
    for layer in module.modules():
        if isinstance(layer, kinds):
            layer.register_forward_hook(lambda _, __, out: found.append(tuple(out.shape[1:])))
    module(torch.empty(1, *shape, device="meta"))
    return found


@pytest.mark.parametrize(
    ("side", "pools"),
    [(32, [16, 8, 4, 2, 1]), (28, [14, 7, 4, 2, 1]), (8, [4, 2, 1, 1, 1]), (64, [32, 16, 8, 4, 2])],
)
def test_vgg11(side: int, pools: list[int]) -> None:
    shape = (3, side, side)
    channels = [64, 128, 256, 256, 512, 512, 512, 512]
    assert [found[0] for found in outputs(ghost("vgg11", shape, 10), shape, (nn.Conv2d,))] == channels
    assert [found[1] for found in outputs(ghost("vgg11", shape, 10), shape, (nn.MaxPool2d,))] == pools
    assert outputs(ghost("vgg11", shape, 10), shape, (nn.Flatten,)) == [(512,)]
    assert [found[0] for found in outputs(ghost("vgg11:6", shape, 10), shape, (nn.Conv2d,))] == [
        6 * wide // 64 for wide in channels
    ]


@pytest.mark.parametrize("side", [32, 28])
def test_resnet50(side: int) -> None:
    shape = (3, side, side)
    module = ghost("resnet50", shape, 10)
    blocks = [layer for layer in module if type(layer).__name__ == "Bottleneck"]
    assert sum(isinstance(layer, nn.Conv2d) for layer in module.modules()) == 1 + 3 * 16 + 4
    assert outputs(module, shape, (type(blocks[0]),)) == [
        *[(256, side, side)] * 3,
        *[(512, side // 2, side // 2)] * 4,
        *[(1024, side // 4, side // 4)] * 6,
        *[(2048, 4, 4)] * 3,
    ]
    assert [found[0] for found in outputs(ghost("resnet50:3", shape, 10), shape, (type(blocks[0]),))] == [
        *[12] * 3,
        *[24] * 4,
        *[48] * 6,
        *[96] * 3,
    ]


def test_a_block_adds_to_what_came_in() -> None:
    module: Any = build("resnet50:4", MNIST, 10, 0)
    first, second = module[3], module[4]
    x = torch.randn(2, 16, 6, 6, generator=torch.Generator().manual_seed(0))
    nothing = [value for block in (first, second) for value in (block.body[-1].weight, block.body[-1].bias)]
    with torch.no_grad():
        for value in nothing:
            value.zero_()
    torch.testing.assert_close(second(x), x.relu())
    torch.testing.assert_close(first(x[:, :4]), first.past(x[:, :4]).relu())


def test_groups() -> None:
    wanted = {2048: 32, 512: 32, 128: 32, 64: 16, 32: 8, 24: 2, 16: 4, 12: 1, 8: 2, 7: 1, 4: 1, 2: 1, 1: 1}
    assert {channels: group_norm(channels).num_groups for channels in wanted} == wanted
    for spec in ("vgg11", "resnet50"):
        module = ghost(spec, CIFAR, 10)
        norms = [layer for layer in module.modules() if isinstance(layer, nn.GroupNorm)]
        assert len(norms) == sum(isinstance(layer, nn.Conv2d) for layer in module.modules())
        assert all(layer.num_groups == wanted.get(layer.num_channels, 32) for layer in norms)


@pytest.mark.parametrize(("spec", "direct"), [("vgg11:4", True), ("resnet50:4", False)])
@pytest.mark.parametrize("shape", [MNIST, (1, 8, 8)])
def test_small_ones_compute(spec: str, direct: bool, shape: tuple[int, ...]) -> None:
    network = Network(build(spec, shape, 10, 0), torch.zeros(shape), 2)
    assert (network.layers is not None) == direct
    x = torch.randn(3, *shape, generator=torch.Generator().manual_seed(0))
    together = network.logits(network.model, {"x": x})
    apart: list[Tensor] = [network.logits(network.model, {"x": sample[None]}) for sample in x]
    torch.testing.assert_close(together, torch.cat(apart), rtol=1e-4, atol=1e-4)  # no sample sees another
    assert together.std(0).min() > 1e-4
