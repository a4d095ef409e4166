"""Gradients without autograd, for many clients at once, of sequences of common layers (an LSTM: `fused_lstm`).

The gradient of a layer's weight is a product of two factors. The product is added directly to the weight, or to its
velocity, so that autograd records no graph and no gradient as large as the model is stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fedkin.core.losses import NOTHING
from fedkin.core.tree import Batch, Model
from fedkin.engines.convolution import WAYS, Product, Way
from fedkin.engines.layers import KeyedDropout, Layers

MASK = "mask of "  # batch[MASK + name] multiplies the input of the dropout layer `name`
NARROW = 16  # outputs up to which a softmax is faster with the batch as the innermost axis


class Rows(NamedTuple):
    """The gradient of an embedding: these vectors are added to these rows of the clients' tables, joined."""

    at: Tensor  # (L,)
    vectors: Tensor  # (L, embedding)


Gradient = Product | Rows | Tensor
Back = Callable[[Tensor, bool], tuple[Tensor | None, dict[str, Gradient]]]
# takes the gradient by a layer's outputs and whether that by its inputs is wanted; returns it and the parameters' ones


def fits(layers: Layers, sample: Tensor) -> bool:
    """Whether the code here can do these layers on such samples: images or vectors first, then vectors."""
    if not all(supported(layer) for _, layer in layers):
        return False
    kinds = [type(layer) for _, layer in layers]
    images = [kind for kind in kinds if kind in (nn.Conv2d, nn.MaxPool2d)]
    if not images:
        return sample.dim() == 1 or kinds[0] is nn.Flatten
    first = next((i for i, kind in enumerate(kinds) if kind is nn.Flatten), len(kinds))
    order = all((kind in (nn.Conv2d, nn.MaxPool2d)) <= (i < first) for i, kind in enumerate(kinds))
    return sample.dim() == 3 and order and nn.Linear not in kinds[:first] and nn.Linear in kinds[first:]


def supported(layer: nn.Module) -> bool:
    """Whether the code here can do this layer."""
    if type(layer) is nn.Conv2d:
        return layer.groups == 1
    if type(layer) is nn.MaxPool2d:
        return not layer.return_indices
    return type(layer) in (nn.Flatten, nn.Linear, nn.ReLU, KeyedDropout)


class Fused(ABC):
    """The gradients of a network, computed without autograd."""

    way: Way | None = None  # how images are convolved, where there are any

    @abstractmethod
    def gradients(self, model: Model, batch: Batch) -> Iterator[tuple[str, Gradient]]:
        """The gradient of each parameter before it is multiplied by `share`, from the last layer to the first.

        A parameter is not read again after its gradient was yielded, so the caller may change it before it asks for the
        next one.
        """

    def add_grad(self, into: Model, keep: float, scale: float, model: Model, batch: Batch) -> None:
        """into <- keep * into + scale * grad(model), in place, for stacked models. `into` may be the model itself."""
        scale *= share(batch)
        for name, found in self.gradients(model, batch):
            add(into[name], keep, scale, found)

    def grad(self, model: Model, batch: Batch) -> Model:
        """The gradient of each client's loss, stacked."""
        found, of_sum = dict(self.gradients(model, batch)), share(batch)
        return {name: whole(found[name], value, of_sum) for name, value in model.items()}


class FusedLayers(Fused):
    """The gradients of a sequence of layers that `fits`. `way` names how its images are convolved, if it has any."""

    def __init__(self, layers: Layers, way: str = "looped"):
        self.layers = layers = pooled_first(layers)
        images = any(isinstance(layer, nn.Conv2d | nn.MaxPool2d) for _, layer in layers)
        self.way = WAYS[way] if images else None
        kinds = (nn.Linear, nn.Conv2d)
        self.first = next(i for i, (_, layer) in enumerate(layers) if isinstance(layer, kinds))  # with parameters
        last = layers[-1][1]
        self.narrow = isinstance(last, nn.Linear) and last.out_features <= NARROW

    def gradients(self, model: Model, batch: Batch) -> Iterator[tuple[str, Gradient]]:
        x, backs, last = batch["x"], [], len(self.layers) - 1
        if self.way is not None:
            x = self.way.enter(x)
        for i, (name, layer) in enumerate(self.layers):
            x, back = passed(name, layer, model, x, batch, self.way, self.narrow and i == last)
            backs.append(back)
        d: Tensor | None = logits_gradient(x, batch, self.narrow)
        for i in range(last, self.first - 1, -1):
            assert d is not None
            d, found = backs[i](d, i > self.first)
            yield from found.items()


def pooled_first(layers: Layers) -> Layers:
    """Return the layers with every ReLU behind the pool that follows it: outputs and gradients stay the same, and the
    ReLU has fewer numbers to look at."""
    found = list(layers)
    for i in range(len(found) - 1):
        if isinstance(found[i][1], nn.ReLU) and isinstance(found[i + 1][1], nn.MaxPool2d):
            found[i], found[i + 1] = found[i + 1], found[i]
    return found


def add(value: Tensor, keep: float, scale: float, found: Gradient) -> None:
    """value <- keep * value + scale * found, in place."""
    if isinstance(found, Product):
        value.view(*value.shape[:2], -1).baddbmm_(found.left, found.right, beta=keep, alpha=scale)
        return
    if keep != 1.0:
        value.mul_(keep)
    if isinstance(found, Rows):
        value.view(-1, value.shape[-1]).index_add_(0, found.at, found.vectors, alpha=scale)
    else:
        value.add_(found, alpha=scale)


def whole(found: Gradient, like: Tensor, scale: float) -> Tensor:
    """The gradient of a parameter as one tensor, multiplied by `scale`: of a product, its left factor is."""
    if isinstance(found, Product):
        return torch.bmm(found.left * scale, found.right).view(like.shape)
    if isinstance(found, Rows):
        none = like.new_zeros(like.shape[0] * like.shape[1], like.shape[2])
        return none.index_add_(0, *found, alpha=scale).view(like.shape)
    return found * scale


def passed(
    name: str, layer: nn.Module, model: Model, x: Tensor, batch: Batch, how: Way | None, narrow: bool
) -> tuple[Tensor, Back]:
    """The outputs of a layer, and the way back through it. `how` images lie in memory, where there are any."""
    if isinstance(layer, nn.Linear):
        return linear_passed(name, model, x, narrow)
    if isinstance(layer, nn.ReLU):
        out = x.clamp_min(0)
        return out, lambda d, wanted: (torch.ops.aten.threshold_backward(d, out, 0), {})
    if isinstance(layer, KeyedDropout):
        mask = batch.get(MASK + name)
        if mask is None:
            return x, lambda d, wanted: (d, {})
        if how is not None and mask.dim() == 5:
            mask = how.enter(mask)
        return x * mask, lambda d, wanted: (d * mask, {})
    if how is None:
        return x.flatten(2), lambda d, wanted: (d, {})  # samples have no gradient
    if isinstance(layer, nn.Flatten):
        return how.leave(x, len(batch["x"])), lambda d, wanted: (how.left(d, x), {})
    if isinstance(layer, nn.MaxPool2d):
        out, saved = how.pool(layer, x)
        return out, lambda d, wanted: (how.pool_back(layer, d, saved), {})
    assert isinstance(layer, nn.Conv2d)
    weight, bias = model[f"{name}.weight"], model[f"{name}.bias"]
    out, saved = how.convolve(layer, x, weight, bias)

    def back(d: Tensor, wanted: bool) -> tuple[Tensor | None, dict[str, Gradient]]:
        found = how.convolve_back(layer, d, saved, weight, wanted)
        return found.inputs, {f"{name}.weight": found.weight, f"{name}.bias": found.bias}

    return out, back


def linear_passed(name: str, model: Model, x: Tensor, narrow: bool) -> tuple[Tensor, Back]:
    """A linear layer. `narrow`: its outputs are (m, out, B), else (m, B, out)."""
    weight, bias = model[f"{name}.weight"], model[f"{name}.bias"]
    out = torch.baddbmm(bias[:, :, None], weight, x.mT) if narrow else torch.baddbmm(bias[:, None], x, weight.mT)

    def back(d: Tensor, wanted: bool) -> tuple[Tensor | None, dict[str, Gradient]]:
        left, right = (d, d.mT) if narrow else (d.mT, d)
        earlier = torch.bmm(right, weight) if wanted else None
        return earlier, {f"{name}.weight": Product(left, x), f"{name}.bias": left.sum(2)}

    return out, back


def share(batch: Batch) -> float:
    """The factor of every gradient: 1 / B, or 1 where samples have weights, which `logits_gradient` has applied."""
    return 1.0 if "weight" in batch else 1.0 / batch["y"].shape[1]


def logits_gradient(logits: Tensor, batch: Batch, narrow: bool) -> Tensor:
    """The gradient of each client's summed loss by its outputs: softmax - one-hot, or 2 (output - y) for numbers.

    Where samples have weights it is that of their weighted mean. With `narrow` the outputs are (m, classes, B).
    """
    if "offset" in batch:
        logits = logits + (batch["offset"][..., None] if narrow else batch["offset"][:, None])
    classes, y = (1, batch["y"][:, None]) if narrow else (2, batch["y"][..., None])
    if y.is_floating_point():
        d = 2 * (logits - y)
    else:
        d = logits.softmax(1) if narrow else logits.log_softmax(2).exp_()
        d.scatter_add_(classes, y, d.new_full((), -1.0).expand(y.shape))
    if "weight" not in batch:
        return d
    weight = batch["weight"] / batch["weight"].sum(1, keepdim=True).clamp(min=NOTHING)
    return d.mul_(weight[:, None] if narrow else weight[..., None])
