"""Gradients of networks of linear layers with ReLU between them, for many clients at once and without autograd.

The gradient of a layer's weight is a product of two factors. The product is added directly to the weight, or to its
velocity, so that autograd records no graph and no gradient as large as the model is stored.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from fedkin.core.tree import Batch, Model
from fedkin.engines.layers import Layers, forward


def fits(layers: Layers | None, sample: Tensor) -> bool:
    """Whether these layers are linear layers on vectors, with ReLU between them. `sample` is one sample."""
    if layers is None or not all(type(layer) in (nn.Flatten, nn.Linear, nn.ReLU) for _, layer in layers):
        return False
    return sample.dim() == 1 or type(layers[0][1]) is nn.Flatten


def add_grad(into: Model, keep: float, scale: float, layers: Layers, model: Model, batch: Batch) -> None:
    """into <- keep * into + scale * grad(model), in place, for stacked models. `into` may be the model itself."""
    for name, d, x in gradient_factors(layers, model, batch):
        into[f"{name}.weight"].baddbmm_(d.mT, x, beta=keep, alpha=scale)
        into[f"{name}.bias"].mul_(keep).add_(d.sum(1), alpha=scale)


def grad(layers: Layers, model: Model, batch: Batch) -> Model:
    """The gradient of each client's loss, stacked."""
    found: Model = {}
    for name, d, x in gradient_factors(layers, model, batch):
        found |= {f"{name}.weight": torch.bmm(d.mT, x), f"{name}.bias": d.sum(1)}
    return {name: found[name] for name in model}


def gradient_factors(layers: Layers, model: Model, batch: Batch) -> Iterator[tuple[str, Tensor, Tensor]]:
    """(name, d, x) of each linear layer, from the last to the first.

    d is the gradient of the loss by the layer's outputs, (m, B, out), and x the layer's inputs, (m, B, in). The
    gradient of the weight is d^T x, and that of the bias is d summed over the batch. The weight of a layer is not read
    again after the layer was yielded, so the caller may change it before it asks for the next layer.
    """
    x, inputs = batch["x"], []
    for layer in layers:
        inputs.append(x)
        x = forward([layer], model, x, {})
    d = logits_gradient(x, batch)
    linear = [i for i, (_, layer) in enumerate(layers) if isinstance(layer, nn.Linear)]
    for i in range(len(layers) - 1, linear[0] - 1, -1):
        name, x = layers[i][0], inputs[i]
        if i in linear:
            earlier = torch.bmm(d, model[f"{name}.weight"]) if i > linear[0] else d
            yield name, d, x
            d = earlier
        elif isinstance(layers[i][1], nn.ReLU):
            d = torch.ops.aten.threshold_backward(d, x, 0)


def logits_gradient(logits: Tensor, batch: Batch) -> Tensor:
    """The gradient of each client's loss by its outputs: (softmax - one-hot) / B, or 2 (output - y) / B for numbers.

    Where batches have weights these take the place of 1 / B.
    """
    y = batch["y"][..., None]  # (m, B, 1)
    if y.is_floating_point():
        d = 2 * (logits - y)
    else:
        d = logits.log_softmax(-1).exp_().scatter_add_(-1, y, -torch.ones_like(y, dtype=logits.dtype))
    if "weight" not in batch:
        return d.div_(y.shape[1])
    return d.mul_((batch["weight"] / batch["weight"].sum(1, keepdim=True))[..., None])
