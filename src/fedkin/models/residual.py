"""ResNet-50 for small images, with group normalisation."""

from __future__ import annotations

from torch import Tensor, nn

from fedkin.models.convolutional import group_norm
from fedkin.models.shape import Shape, require_images

STAGES = (3, 4, 6, 3)  # blocks of each stage; every stage but the first halves the image and doubles the channels
WIDER = 4  # a block's output channels divided by its inner channels


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions whose result is added to the block's input. The 3x3 convolution has the stride."""

    def __init__(self, into: int, inner: int, stride: int):
        super().__init__()
        out = WIDER * inner
        self.body = nn.Sequential(
            nn.Conv2d(into, inner, 1, bias=False),
            group_norm(inner),
            nn.ReLU(),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False),
            group_norm(inner),
            nn.ReLU(),
            nn.Conv2d(inner, out, 1, bias=False),
            group_norm(out),
        )
        straight = stride == 1 and into == out
        self.past = (
            nn.Identity() if straight else nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False), group_norm(out))
        )
        self.last = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(self.body(x) + self.past(x))
        return found


def resnet50(shape: Shape, classes: int, base: int = 64) -> nn.Module:
    """ResNet-50: 3, 4, 6 and 3 bottleneck blocks.

    It begins with one 3x3 convolution and no pool, as is usual for images of 28 or 32 pixels. `base` is the number of
    channels of that convolution, and the others are in proportion: resnet50:8 has an eighth of ResNet-50's channels.
    """
    require_images(shape, "resnet50", 8)
    layers: list[nn.Module] = [nn.Conv2d(shape[0], base, 3, padding=1, bias=False), group_norm(base), nn.ReLU()]
    into = base
    for stage, blocks in enumerate(STAGES):
        inner = base * 2**stage
        for block in range(blocks):
            layers.append(Bottleneck(into, inner, 2 if stage and not block else 1))
            into = WIDER * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, classes))
