"""The gradients and the outputs of our LSTM (`models.recurrent`) for many clients, without autograd."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from fedkin.core import tree
from fedkin.core.tree import Batch, Model
from fedkin.engines.fused import Fused, Gradient, Rows, linear_passed, logits_gradient
from fedkin.engines.recurrence import Back, Layer, way
from fedkin.models.recurrent import LSTM, PADDING, Recurrence

TABLE = "embedding.weight"


def fits(module: nn.Module, trained: Model) -> bool:
    """Whether a module is our LSTM as we build it, on a CPU, with all of its parameters trained."""
    if type(module) is not LSTM or {name for name, _ in module.named_parameters()} != set(trained):
        return False
    kinds = [type(part) for part in (module.embedding, *module.layers, module.head)]
    ours = kinds == [nn.Embedding, *[Recurrence] * len(module.layers), nn.Linear]
    return ours and module.head.bias is not None and trained[TABLE].device.type == "cpu"


class FusedLSTM(Fused):
    """The gradients of an LSTM that `fits` and whose parameters are like those of `model`."""

    def __init__(self, model: Model):
        self.names = [name.removesuffix(".recurrent") for name in model if name.endswith(".recurrent")]
        self.cells = way(model[TABLE])

    def add_grad(self, into: Model, keep: float, scale: float, model: Model, batch: Batch) -> None:
        for at in self.groups(batch):
            Fused.add_grad(self, tree.rows(into, at), keep, scale, tree.rows(model, at), tree.rows(batch, at))

    def grad(self, model: Model, batch: Batch) -> Model:
        each = [Fused.grad(self, tree.rows(model, at), tree.rows(batch, at)) for at in self.groups(batch)]
        return tree.joined(each)

    def logits(self, model: Model, batch: Batch) -> Tensor:
        """The logits of each client's batch; autograd cannot follow them."""  # (m, B, classes)
        found = []
        for at in self.groups(batch):
            own = tree.rows(model, at)
            _, x, begun = self.entered(own[TABLE], batch["x"][at])
            for layer in self.layers(own):
                x = self.cells.states(layer, x, begun)
            found.append(linear_passed("head", own, x[:, -1], False)[0])
        return torch.cat(found)

    def groups(self, batch: Batch) -> list[slice]:
        """The clients that are run at once: all, or one after another."""
        return [slice(None)] if self.cells.together else [slice(i, i + 1) for i in range(len(batch["x"]))]

    def layers(self, model: Model) -> list[Layer]:
        """The parameters of each layer."""
        return [Layer(*(model[f"{name}.{part}"] for part in Layer._fields)) for name in self.names]

    def gradients(self, model: Model, batch: Batch) -> Iterator[tuple[str, Gradient]]:
        at, x, begun = self.entered(model[TABLE], batch["x"])
        backs: list[Back] = []
        for layer in self.layers(model):
            x, back = self.cells.run(layer, x, begun)
            backs.append(back)
        logits, head_back = linear_passed("head", model, x[:, -1], False)
        by_last, found = head_back(logits_gradient(logits, batch, False), True)
        assert by_last is not None
        yield from found.items()
        d = torch.zeros_like(x)
        d[:, -1] = by_last  # the head reads no other state
        for name, back in zip(reversed(self.names), reversed(backs), strict=True):
            slopes = back(d)
            d = slopes.inputs
            yield from ((f"{name}.{part}", getattr(slopes, part)) for part in Layer._fields)
        yield TABLE, torch.zeros_like(model[TABLE]) if at is None else Rows(at, d.reshape(-1, d.shape[-1]))

    def entered(self, table: Tensor, x: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None]:
        """What enters the first layer: the row of each token in the clients' joined tables (None: samples are embedded
        already), the embedded tokens, and `begun` (None: no padding).
        """  # (m T B,), (m, T, B, embedding), (m, T, B, 1)
        if x.is_floating_point():
            return None, x.transpose(1, 2), None
        tokens = x.mT.long()
        if not self.cells.together:  # else the number of times, and so the last digits, would depend on other clients
            tokens = tokens[:, int((tokens != PADDING).any(2)[0].byte().argmax()) :]  # before that all is padding
        begun = None
        if (tokens[:, 0] == PADDING).any():
            begun = ((tokens != PADDING).cumsum(1) > 0)[..., None].to(table.dtype)
        first = torch.arange(len(table)) * table.shape[1]
        at = (tokens + first[:, None, None]).flatten()
        embedded = table.flatten(0, 1).index_select(0, at)
        return at, embedded.view(*tokens.shape, -1), begun
