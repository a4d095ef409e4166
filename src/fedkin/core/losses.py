"""What all methods minimise: the cross-entropy of classes or, where the targets are numbers, the squared error."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from fedkin.core.tree import Batch

NOTHING = 1e-12  # a weight below this is none: where no sample of a batch counts, its loss is 0


def each(out: Tensor, y: Tensor) -> Tensor:
    """The loss of each sample. `out` has one axis more than `y`: the logits of the classes, or one number."""
    if y.is_floating_point():
        return (out.squeeze(-1) - y).square()
    found: Tensor = F.cross_entropy(out.flatten(0, -2), y.flatten(), reduction="none").view(y.shape)
    return found


def mean(values: Tensor, batch: Batch) -> Tensor:
    """The mean of a number of each sample over each client's batch, weighted where the batch has weights.

    Samples that only fill a short batch up have weight 0.
    """
    if "weight" not in batch:
        return values.mean(-1)
    return (values * batch["weight"]).sum(-1) / batch["weight"].sum(-1).clamp(min=NOTHING)


def shifted(out: Tensor, batch: Batch) -> Tensor:
    """The logits as they count in the loss: with the offset of their client, where the batch has one.

    out: (B, classes), or (m, B, classes) for many clients at once.
    """
    return out + batch["offset"].unsqueeze(-2) if "offset" in batch else out
