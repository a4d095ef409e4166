"""Find data that would have given a client's update: gradient matching, for all clients at once (PFedRe, eq. 3).

This is a model-inversion attack on every single update (docs/privacy.md). The dummy data are compared with each other
and then dropped; they are never written to disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.func import grad, vmap

from fedkin.core import tree
from fedkin.core.tree import Batch, Model
from fedkin.errors import BadInput
from fedkin.keep import matching
from fedkin.messages import Layers, Tell, nobody

HELD = 2**30  # about how many bytes the clients that are inverted at once may take
CACHED = 2**25  # the same in closed form, where more than a cache holds would be slower
TIMES = 10  # measured: inverting takes 7 to 13 times what one backward pass needs and gives
BETAS, EPSILON = (0.9, 0.999), 1e-8  # Adam's

Logits = Callable[[Model, Batch], Tensor]
Slope = Callable[[Batch], Batch]  # of every client's J, by its dummies


def balanced(classes: int, samples: int) -> Tensor:
    """The labels of the dummy data, which are the same for all clients: `samples` of each class, class by class
    (A-R4)."""
    return torch.arange(classes).repeat_interleave(samples)


def targets(
    before: Model,
    after: Model,
    rate: Tensor,
    steps: Tensor,
    scale: float = 1.0,
    literal: bool = False,
    normalise: bool = False,
) -> Model:
    """G_i = scale (omega - omega_i) / (eta K_i): the mean gradient of the K_i steps of client i (A-R1).

    `literal` is eq. (3) as printed, scale (omega_i - omega) / K_i, which has the opposite direction and lacks 1 / eta.
    `normalise` divides all G_i by the median of their norms, so that `scale` has no effect (A-R3).
    """
    divisor = steps if literal else -rate * steps
    each = (scale / divisor).to(next(iter(after.values())))

    def one(old: Tensor, new: Tensor) -> Tensor:
        return (new - old) * each.reshape(-1, *(1,) * (new.dim() - 1))

    found = tree.mapped(one, before, after)
    if not normalise:
        return found
    norms = torch.stack([value.double().flatten(1).square().sum(1) for value in found.values()]).sum(0).sqrt()
    middle = norms.quantile(0.5)
    return tree.mapped(lambda value: value / middle.to(value), found) if middle > 0 else found


def mismatch(logits: Logits, model: Model, x: Tensor, y: Tensor, target: Model) -> Tensor:
    """J(x) = sum_l | grad_theta F((x, y); omega)_l - G_l |^2 of one client. y: the samples' classes, or a share of each
    class for every sample."""
    found = grad(lambda theta: F.cross_entropy(logits(theta, {"x": x}), y))(model)
    return torch.stack([(found[name] - target[name]).square().sum() for name in model]).sum()


def inverted(
    logits: Logits,
    model: Model,
    target: Model,
    start: Tensor,
    y: Tensor,
    iterations: int,
    rate: float,
    tell: Tell = nobody,
    soft: Tensor | None = None,
    layers: Layers | None = None,
) -> Tensor:
    """The dummy data of every client after `iterations` steps of Adam on J from the same start.

    With `soft` labels are fitted as well, as DLG does: each is the softmax of numbers that start there, and `y` is not
    used. Where the network's `layers` are given and `matching` knows them, J is not differentiated twice.
    """  # (m, k, ...)
    m = len(next(iter(target.values())))
    one = tree.row(target, 0)
    stored = recorded(logits, one, start, y)
    closed = matching.fits(layers, start.shape[1:])
    many = CACHED // (TIMES * stored) if closed else HELD // (TIMES * (stored + tree.size([one])[1]))
    found = []
    for at in torch.arange(m).split(max(1, many)):
        chunk = slice(int(at[0]), int(at[-1]) + 1)

        def tick(share: float, at: Tensor = at) -> None:
            tell("inverting updates", int(at[0]) + share * len(at), m)

        some = tree.rows(model, chunk), tree.rows(target, chunk)
        found.append(descended(logits, *some, start, y, iterations, rate, tick, soft, layers)["x"])
    return torch.cat(found)


def recorded(logits: Logits, like: Model, x: Tensor, y: Tensor) -> int:
    """The bytes that the network stores for a backward pass, without the model itself."""
    theta = tree.mapped(lambda value: value.detach().clone().requires_grad_(), like)
    parameters = {value.untyped_storage().data_ptr() for value in theta.values()}
    stored: dict[int, torch.UntypedStorage] = {}  # holds the storages, so that no address is used twice

    def seen(value: Tensor) -> Tensor:
        stored[value.untyped_storage().data_ptr()] = value.untyped_storage()
        return value

    with torch.enable_grad(), saved_tensors_hooks(seen, lambda value: value):
        F.cross_entropy(logits(theta, {"x": x.detach().requires_grad_()}), y)
    return sum(storage.nbytes() for address, storage in stored.items() if address not in parameters)


def labels(dummies: Batch, y: Tensor) -> Tensor:
    """The labels of the dummies: y, or what was fitted."""
    return dummies["y"].softmax(-1) if "y" in dummies else y


def closed_slope(layers: Layers, model: Model, target: Model, y: Tensor) -> Slope:
    """The slope of J by the equations of `matching`."""
    made = matching.made(layers, model, target)

    def slope(dummies: Batch) -> Batch:
        shares = labels(dummies, y)
        by_x, by_shares = matching.slopes(made, dummies["x"], shares)
        return {"x": by_x} | ({"y": matching.through_softmax(shares, by_shares)} if "y" in dummies else {})

    return slope


def general_slope(logits: Logits, model: Model, target: Model, y: Tensor) -> Slope:
    """The slope of J of any network, by differentiating twice."""
    shared = all(
        value.stride(0) == 0 for value in model.values()
    )  # all clients were sent one model, which need not be copied
    theta = tree.row(model, 0) if shared else model

    def cost(dummies: Batch, theta: Model, target: Model) -> Tensor:
        return mismatch(logits, theta, dummies["x"], labels(dummies, y), target)

    lifted: Any = vmap(grad(cost), in_dims=(0, None if shared else 0, 0))

    def slope(dummies: Batch) -> Batch:
        try:
            found: Batch = lifted(dummies, theta, target)
        except RuntimeError as error:
            if "vmap" not in str(error) and "Batching rule" not in str(error):
                raise
            what = "The model has a layer through which the updates of many clients cannot be inverted at once"
            raise BadInput(f"{what}; use another layer, or --set keep=Alignment.") from error
        return found

    return slope


@torch.no_grad()
def descended(
    logits: Logits,
    model: Model,
    target: Model,
    start: Tensor,
    y: Tensor,
    iterations: int,
    rate: float,
    tick: Callable[[float], None],
    soft: Tensor | None = None,
    layers: Layers | None = None,
) -> Batch:
    """As `inverted`, for clients that fit into memory at once; with `soft` the numbers of the labels are beside the
    samples as 'y'. `tick` gets the share of steps that are done."""
    if matching.fits(layers, start.shape[1:]):
        slope = closed_slope(layers, model, target, y)
    else:
        slope = general_slope(logits, model, target, y)
    begun = {"x": start} | ({} if soft is None else {"y": soft})
    dummies = tree.mapped(torch.clone, tree.repeated(begun, len(next(iter(target.values())))))
    mean, square, size = tree.zeros(dummies), tree.zeros(dummies), tree.zeros(dummies)
    for step in range(1, iterations + 1):
        for name, g in slope(dummies).items():
            mean[name].lerp_(g, 1 - BETAS[0])
            square[name].mul_(BETAS[1]).addcmul_(g, g, value=1 - BETAS[1])
            torch.div(square[name], 1 - BETAS[1] ** step, out=size[name]).sqrt_().add_(EPSILON)
            dummies[name].addcdiv_(mean[name], size[name], value=-rate / (1 - BETAS[0] ** step))
        tick(step / iterations)
    return dummies
