"""Gradients of linear layers with ReLU between, for many clients at once and without autograd.

The gradient of a layer comes in two factors, whose product is added straight to what it moves, the weights
themselves or a velocity: no graph is recorded, and no gradient as large as the model is stored.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from fedkin.core.tree import Batch, Model
from fedkin.engines.layers import Layers, forward


def fits(layers: Layers | None, sample: Tensor) -> bool:
    """Whether a network for such samples is one of linear layers, of vectors, with ReLU between them."""
    if layers is None or not all(type(layer) in (nn.Flatten, nn.Linear, nn.ReLU) for _, layer in layers):
        return False
    return sample.dim() == 1 or type(layers[0][1]) is nn.Flatten


def add_grad(into: Model, keep: float, scale: float, layers: Layers, model: Model, batch: Batch) -> None:
    """into <- keep into + scale grad(model), in place, of stacked models; `into` may be the model itself."""
    for name, d, x in factors(layers, model, batch):
        into[f"{name}.weight"].baddbmm_(d.mT, x, beta=keep, alpha=scale)
        into[f"{name}.bias"].mul_(keep).add_(d.sum(1), alpha=scale)


def grad(layers: Layers, model: Model, batch: Batch) -> Model:
    """The gradient itself, where it is wanted."""
    found: Model = {}
    for name, d, x in factors(layers, model, batch):
        found |= {f"{name}.weight": torch.bmm(d.mT, x), f"{name}.bias": d.sum(1)}
    return {name: found[name] for name in model}


def factors(layers: Layers, model: Model, batch: Batch) -> Iterator[tuple[str, Tensor, Tensor]]:
    """(name, d, x) of each linear layer, the last first, with d the slope at what it gives, (m, B, out), and x what it
    is given, (m, B, in): the gradient of its weight is d^T x, that of its bias d summed over the batch.

    Once a layer is handed out its weight is not looked at again, so it may be changed before the next is asked for.
    """
    x, inputs = batch["x"], []
    for layer in layers:
        inputs.append(x)
        x = forward([layer], model, x, {})
    d = slope(x, batch)
    linear = [i for i, (_, layer) in enumerate(layers) if isinstance(layer, nn.Linear)]
    for i in range(len(layers) - 1, linear[0] - 1, -1):
        name, x = layers[i][0], inputs[i]
        if i in linear:
            earlier = torch.bmm(d, model[f"{name}.weight"]) if i > linear[0] else d
            yield name, d, x
            d = earlier
        elif isinstance(layers[i][1], nn.ReLU):
            d = torch.ops.aten.threshold_backward(d, x, 0)


def slope(logits: Tensor, batch: Batch) -> Tensor:
    """The gradient of each client's loss at its logits: (softmax - one-hot) / B, by weight in short batches."""
    y = batch["y"][..., None]  # (m, B, 1)
    d = logits.log_softmax(-1).exp_().scatter_add_(-1, y, -torch.ones_like(y, dtype=logits.dtype))
    if "weight" not in batch:
        return d.div_(y.shape[1])
    return d.mul_((batch["weight"] / batch["weight"].sum(1, keepdim=True))[..., None])
