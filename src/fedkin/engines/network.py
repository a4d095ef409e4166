"""Turns a torch module into pure functions of its parameters, for one client and for many clients at once."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.func import grad as gradient

from fedkin.core import losses
from fedkin.core.tree import Batch, Model
from fedkin.engines import fused_lstm, layers
from fedkin.engines.footprint import Footprint
from fedkin.engines.fused import MASK, Fused, FusedLayers, fits
from fedkin.engines.fused_lstm import FusedLSTM
from fedkin.engines.layers import KeyedDropout
from fedkin.engines.lifting import Logits, looped, unlifted
from fedkin.errors import BadInput, require


class Network:
    """A module's logits and its loss, which all methods minimise.

    A client's model consists of the module's trainable parameters. All else in the module is the same for every client
    and stays in the module. Layers with running statistics, which would differ between clients, are refused.

    `unlifted` is the layer, in words, that keeps it from running for many clients at once; None where there is none.

    `sample` is one sample, and `batch` a number of samples; the module is tried on such a batch. `dtype` is the type of
    the parameters (None: as in the module). The module must give `classes` logits (None: any number).
    """

    def __init__(
        self,
        module: nn.Module,
        sample: Tensor,
        batch: int,
        dtype: torch.dtype | None = None,
        classes: int | None = None,
    ):
        module = copy.deepcopy(module).train().to(device=sample.device, dtype=dtype)
        for name, layer in module.named_modules():
            tracks = isinstance(layer, nn.modules.batchnorm._NormBase) and layer.track_running_stats
            if tracks or isinstance(layer, nn.modules.batchnorm._BatchNorm):
                raise BadInput(
                    f"Layer '{name}' ({type(layer).__name__}) takes statistics over batches, whose sizes differ "
                    "between clients, and cannot be averaged with the model; use nn.GroupNorm."
                )
        self.module = with_keyed_dropout(module)
        self.model: Model = {k: v.detach().clone() for k, v in self.module.named_parameters() if v.requires_grad}
        require(self.model, "The model has no trainable parameters, so there is nothing to learn.")
        for parameter in self.module.parameters():
            parameter.requires_grad_(False)
        self.dropouts = {
            name: layer.p for name, layer in self.module.named_modules() if isinstance(layer, KeyedDropout)
        }
        self.sample, self.batch = sample, batch
        self.masks, self.footprint, self.outputs = self._try_out(sample, batch, classes)
        self.layers = layers.supported_layers(self.module, set(self.model))
        self.fused: Fused | None = None
        if self.layers is not None and fits(self.layers, sample):
            self.fused = FusedLayers(self.layers)
        elif fused_lstm.fits(self.module, self.model):
            self.fused = FusedLSTM(self.model)
        known = self.layers is not None or self.fused is not None
        self.unlifted = None if known else unlifted(self.module, self.logits, self.model, sample)
        self.lifted = self.lift(self.logits)

    def lift(self, f: Logits) -> Logits:
        """Return a function of one client as one of many: by vmap, or in a loop where it cannot run the module."""
        return vmap(f) if self.unlifted is None else looped(f)

    @property
    def parameters(self) -> int:
        """How many trainable numbers the model has."""
        return sum(value.numel() for value in self.model.values())

    def differentiable(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of inputs that the module can be differentiated by: a sample, or the embedded tokens of a text."""
        embedded = getattr(self.module, "embedded", None)
        return shape if embedded is None else tuple(embedded(shape))

    def _try_out(self, sample: Tensor, batch: int, classes: int | None) -> tuple[dict[str, tuple[int, ...]], int, int]:
        """The shape of each dropout layer's input, the bytes of memory that a forward pass needs for one sample, and
        how many numbers the module gives for it.

        A module that does not fit the samples or draws random numbers itself is refused.
        """
        shapes: dict[str, tuple[int, ...]] = {}

        def record(name: str, shape: tuple[int, ...]) -> None:
            require(name not in shapes, f"Dropout layer '{name}' is used more than once; give each place its own.")
            shapes[name] = shape

        hooks = [
            layer.register_forward_hook(lambda _, inputs, __, name=name: record(name, tuple(inputs[0].shape)))
            for name, layer in self.module.named_modules()
            if isinstance(layer, KeyedDropout)
        ]
        x = sample[None].expand(batch, *sample.shape).contiguous()
        before = torch.get_rng_state()
        try:
            with Footprint([x, *self.module.parameters(), *self.module.buffers()]) as found:
                out = self.module(x)
        except BadInput:
            raise
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            reason = str(error).splitlines()[0]
            raise BadInput(f"The model does not take samples of shape {tuple(sample.shape)}: {reason}") from error
        finally:
            for hook in hooks:
                hook.remove()
        shape = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        fits = isinstance(out, Tensor) and out.dim() == 2 and len(out) == batch and classes in (None, out.shape[1])
        wanted = f"({batch}, {classes or 'classes'})"
        require(fits, f"The model must give a row of class scores for each of {batch} samples, {wanted}, not {shape}.")
        same = torch.equal(before, torch.get_rng_state())
        torch.set_rng_state(before)
        require(same, "The model draws random numbers itself; use nn.Dropout layers, whose masks fedkin can key.")
        return shapes, max(1, (x.nbytes + found.most) // batch), out.shape[1]

    def logits(self, model: Model, batch: Batch) -> Tensor:
        """The logits of one client's batch."""  # (B, classes)
        masks = {f"{name}.mask": batch[MASK + name] for name in self.dropouts if MASK + name in batch}
        result: Tensor = functional_call(self.module, {**model, **masks}, (batch["x"],))
        return result

    def stacked_logits(self, stacked: Model, batch: Batch) -> Tensor:
        """The logits of many clients, each with its own model and batch."""  # (m, B, classes)
        if self.layers is not None:
            masks = {name: batch[MASK + name] for name in self.dropouts if MASK + name in batch}
            return layers.forward(self.layers, stacked, batch["x"], masks)
        if isinstance(self.fused, FusedLSTM) and not torch.is_grad_enabled():
            return self.fused.logits(stacked, batch)
        if len(batch["x"]) == 1:  # for one client vmap would only cost time
            one = [{name: value.squeeze(0) for name, value in values.items()} for values in (stacked, batch)]
            return self.logits(*one)[None]
        return self.lifted(stacked, batch)

    def loss(self, model: Model, batch: Batch) -> Tensor:
        """The mean loss (`core.losses`) of one client's batch, over its real samples."""
        return losses.mean(losses.each(losses.shifted(self.logits(model, batch), batch), batch["y"]), batch)

    def grad(self, model: Model, batch: Batch) -> Model:
        """The gradient of the loss of one client's batch."""
        result: Model = gradient(self.loss)(model, batch)
        return result


class StackedObjective:
    """The losses and gradients of many clients at once.

    One backward pass through the sum of all losses gives every client's gradient, since no loss depends on the model of
    another client.
    """

    def __init__(self, network: Network):
        self.network = network

    def logits(self, stacked: Model, batch: Batch) -> Tensor:
        """The logits of each client's batch."""  # (m, B, classes)
        return self.network.stacked_logits(stacked, batch)

    def loss(self, stacked: Model, batch: Batch) -> Tensor:
        """The loss of each client."""  # (m,)
        logits = losses.shifted(self.network.stacked_logits(stacked, batch), batch)
        return losses.mean(losses.each(logits, batch["y"]), batch)

    def grad(self, stacked: Model, batch: Batch) -> Model:
        """The gradient of each client's loss, stacked."""
        if self.network.fused is not None:
            return self.network.fused.grad(stacked, batch)
        with torch.enable_grad():
            leaves = {name: value.detach().requires_grad_() for name, value in stacked.items()}
            if "weight" in batch or batch["y"].is_floating_point():
                total = self.loss(leaves, batch).sum()
            else:
                logits = losses.shifted(self.network.stacked_logits(leaves, batch), batch)
                total = F.cross_entropy(logits.flatten(0, 1), batch["y"].flatten(), reduction="sum")
                total = total / batch["y"].shape[1]
            found = torch.autograd.grad(total, list(leaves.values()), materialize_grads=True)  # unused parameter: zero
        return dict(zip(leaves, found, strict=True))

    def add_grad(self, into: Model, keep: float, scale: float, stacked: Model, batch: Batch) -> None:
        """into <- keep * into + scale * grad(stacked), in place. `into` may be the model itself."""
        if self.network.fused is not None:
            return self.network.fused.add_grad(into, keep, scale, stacked, batch)
        found = self.grad(stacked, batch)
        if keep != 1.0:
            torch._foreach_mul_(list(into.values()), keep)
        torch._foreach_add_(list(into.values()), [found[name] for name in into], alpha=scale)


def with_keyed_dropout(module: nn.Module) -> nn.Module:
    """The module with each nn.Dropout replaced by a `KeyedDropout`, in place."""
    if isinstance(module, nn.Dropout):
        return KeyedDropout(module.p)
    for name, child in list(module._modules.items()):  # named_children lists a layer that is used twice only once
        if child is None:
            continue
        if isinstance(child, nn.modules.dropout._DropoutNd) and not isinstance(child, nn.Dropout) and child.p > 0:
            raise BadInput(f"Layer '{name}' is {type(child).__name__}; only nn.Dropout has keyed masks here.")
        setattr(module, name, with_keyed_dropout(child))
    return module
