"""How good predictions are. Every metric is computed for many clients at once, or for many weightings of one client.

In this file `m` clients have up to `width` samples each, padded to one stack. A sample counts by its weight: 0 for one
that only fills the stack up, 1 for a real one, and in a bootstrap as often as it was drawn. Outputs and truth may be
those of one client (m = 1) while the weights have b rows; then b values come out, as if there were b clients.
docs/metrics.md says in words what each metric means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedkin.errors import BadInput, unknown

BINS = 15  # of confidence, of equal width, for the calibration error
EQUAL = 2.0**-38  # scores that differ by less are equal: the order of a sum is to break no tie
HELD = 2**16  # outputs that are looked at at once, of many clients or in many weightings


class Judged:
    """Outputs beside the truth. What several metrics need of them is computed once."""

    def __init__(self, outputs: Tensor, y: Tensor, weights: Tensor, scale: Tensor | None = None):
        self.outputs, self.y = outputs.double(), y  # (m, width, classes), (m, width)
        self.weights = weights.double()  # (m, width) or, for m = 1, (b, width)
        self.scale = scale  # (m,) what 1 in y is worth in the target's own unit; None: 1

    @cached_property
    def total(self) -> Tensor:  # (b,)
        return self.weights.sum(-1)

    @cached_property
    def log_p(self) -> Tensor:  # (m, width, classes)
        """The logarithms of the classes' probabilities."""
        return self.outputs - self.outputs.logsumexp(-1, keepdim=True)  # three times faster than log_softmax

    @cached_property
    def loss(self) -> Tensor:  # (m, width)
        """The loss of each sample; infinite where a prediction is not finite."""
        if self.y.is_floating_point():
            each = (self.outputs[..., 0] - self.y.double()).square()
        else:
            each = -self.log_p.gather(-1, self.y[..., None])[..., 0]
        return torch.where(each.isfinite(), each, torch.inf)

    @cached_property
    def sound(self) -> Tensor:  # (m, width) bool
        """Whether a prediction is finite."""
        return self.loss.isfinite()

    @cached_property
    def said(self) -> Tensor:  # (m, width)
        """The class that is predicted."""
        return self.outputs.argmax(-1)

    @cached_property
    def right(self) -> Tensor:  # (m, width) bool
        """Whether the class is right; a prediction that is not finite is wrong."""
        return (self.said == self.y) & self.sound

    def mean(self, each: Tensor) -> Tensor:  # (b,)
        """The mean of a number of each sample; nan for a client without samples."""
        return torch.where(self.weights > 0, self.weights * each, 0.0).sum(-1) / self.total

    def by_class(self, weights: Tensor, label: Tensor | None = None) -> Tensor:  # (b, classes)
        """The sum of these weights over the samples of each class, of the truth or of another label."""
        label = self.y if label is None else label
        zero = torch.zeros(len(weights), self.outputs.shape[-1], dtype=torch.float64)
        return zero.scatter_add_(1, label.expand_as(weights), weights)

    @cached_property
    def truth(self) -> Tensor:  # (b, classes)
        """How many samples of each class there are."""
        return self.by_class(self.weights)


def accuracy(seen: Judged) -> Tensor:
    return seen.mean(seen.right.double())


def balanced_accuracy(seen: Judged) -> Tensor:
    """The mean, over the classes that there are, of the share of a class that is recognised."""
    return mean_defined(seen.by_class(seen.weights * seen.right) / seen.truth)


def auc(seen: Judged) -> Tensor:
    """The mean, over the classes that there are, of the share of pairs (of the class, not of it) in which the sample of
    the class has the larger score; ties count half. With two classes both give the same number."""
    rank = dense_rank(one_vs_rest(seen))  # (m, classes, width)
    b, width = seen.weights.shape
    mass = torch.zeros(b, rank.shape[1], width, dtype=torch.float64)  # the weight of each rank
    mass.scatter_add_(2, rank.expand_as(mass), seen.weights[:, None].expand_as(mass))
    below = mass.cumsum(2) - mass / 2  # the weight of the lower scores, and half of that of equal ones
    own = seen.y * width + rank.gather(1, seen.y[:, None])[:, 0]  # where a sample stands in its own class' ranking
    beaten = below.flatten(1).gather(1, own.expand(b, width))
    won = seen.by_class(seen.weights * beaten) - seen.truth.square() / 2  # without the pairs within the class
    pairs = seen.truth * (seen.total[:, None] - seen.truth)
    return mean_defined(torch.where(pairs > 0, won / pairs, torch.nan))


def one_vs_rest(seen: Judged) -> Tensor:
    """The score of each class for each sample, (m, classes, width). What is not finite loses against all else."""
    out = seen.outputs
    two = out.shape[-1] == 2  # then the odds are exact where a softmax is not
    scores = (out - out.flip(-1)).mT if two else (seen.log_p / EQUAL).round().mT
    if seen.sound.all():
        return scores
    is_own = torch.arange(out.shape[-1])[:, None] == seen.y[:, None]
    worst = torch.where(is_own, -torch.inf, torch.inf)
    return torch.where(seen.sound[:, None], scores, worst)


def dense_rank(scores: Tensor) -> Tensor:
    """0 for the lowest score of a row, 1 for the next, and so on; equal scores have the same rank."""
    order = torch.from_numpy(np.argsort(scores.numpy(), -1))  # four times faster than torch
    ordered = scores.gather(-1, order)
    higher = torch.zeros_like(order)
    higher[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    return torch.empty_like(order).scatter_(-1, order, higher.cumsum(-1))


def f1(seen: Judged) -> Tensor:
    """Of class 1 where there are two classes, else the mean over the classes in the truth or among the predictions."""
    hits = seen.by_class(seen.weights * seen.right)
    said = seen.by_class(seen.weights * seen.sound, seen.said)
    each = 2 * hits / (seen.truth + said)
    return each[:, 1] if each.shape[1] == 2 else mean_defined(each)


def log_loss(seen: Judged) -> Tensor:
    return seen.mean(seen.loss)


def calibration_error(seen: Judged) -> Tensor:
    """The difference between confidence and accuracy in each bin of confidence, weighted by the bin's samples."""
    sure = torch.where(seen.sound, seen.log_p.amax(-1).exp(), 1.0)
    bin = (sure * BINS).ceil().long().sub(1).clamp(0, BINS - 1)  # (m, width)
    zero = torch.zeros(len(seen.weights), BINS, dtype=torch.float64)
    gap = zero.scatter_add_(1, bin.expand_as(seen.weights), seen.weights * (seen.right.double() - sure))
    return gap.abs().sum(1) / seen.total


def r2(seen: Judged) -> Tensor:
    """1 minus the squared error over that of the mean of the truth; nan where the truth does not vary."""
    y, has = seen.y.double(), seen.weights > 0
    spread = seen.mean((y - seen.mean(y)[:, None]).square())
    low, high = torch.where(has, y, torch.inf).amin(-1), torch.where(has, y, -torch.inf).amax(-1)
    return torch.where(low < high, 1 - seen.mean(seen.loss) / spread, torch.nan)


def rmse(seen: Judged) -> Tensor:
    """The root of the mean squared error, in the target's own unit."""
    return seen.mean(seen.loss).sqrt() * (1.0 if seen.scale is None else seen.scale.double())


def mean_defined(each: Tensor) -> Tensor:
    """The mean over the columns that are not nan; nan where all are."""  # (b,)
    return each.nan_to_num(0.0).sum(1) / (~each.isnan()).sum(1)


@dataclass(frozen=True)
class Metric:
    """A metric by name, and how to read it. `percent`: a share that is shown in percent; else it is a plain number."""

    name: str
    label: str
    task: str  # "classify" or "regress"
    higher_is_better: bool
    percent: bool
    measure: Callable[[Judged], Tensor] = field(repr=False, compare=False)
    by_class: bool = False  # whether each class counts the same, so that rows of the rarer classes decide

    def gain(self, theirs: Any, other: Any) -> Any:
        """Return how much better `theirs` is than `other`: positive is better, whatever the metric."""
        return theirs - other if self.higher_is_better else other - theirs


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy", "classify", True, True, accuracy),
        Metric("balanced_accuracy", "balanced accuracy", "classify", True, True, balanced_accuracy, by_class=True),
        Metric("auc", "ROC AUC", "classify", True, True, auc, by_class=True),
        Metric("f1", "F1", "classify", True, True, f1, by_class=True),
        Metric("log_loss", "log loss", "classify", False, False, log_loss),
        Metric("calibration_error", "calibration error", "classify", False, False, calibration_error),
        Metric("r2", "R2", "regress", True, False, r2),
        Metric("rmse", "RMSE", "regress", False, False, rmse),
    )
}


def of_task(task: str) -> tuple[str, ...]:
    """Return the names of the metrics of a task, "classify" or "regress"."""
    return tuple(name for name, metric in METRICS.items() if metric.task == task)


def default(task: str) -> str:
    """Return the metric that decides unless another one is chosen."""
    return of_task(task)[0]


def named(name: str) -> Metric:
    """Return the metric of this name."""
    if name not in METRICS:
        raise unknown("metric", name, METRICS)
    return METRICS[name]


def deciding(name: str | None, task: str) -> str:
    """Return the metric that decides: the one of this name, refused if it is of another task, or the default one."""
    if name is None or named(name).task == task:
        return name or default(task)
    what = "classes" if task == "classify" else "numbers"
    fit = ", ".join(of_task(task))
    raise BadInput(f"The targets of these data are {what}, which have no {METRICS[name].label}; use --metric {fit}.")


def of_clients(
    names: Iterable[str], outputs: Tensor, y: Tensor, live: Tensor, scale: Tensor | None = None
) -> dict[str, Tensor]:
    """Return these metrics of each client; nan where a metric is not defined.

    outputs (m, width, classes), y (m, width); live (m, width): which of the samples are real.
    """  # (m,) float64 each
    found: dict[str, list[Tensor]] = {name: [] for name in names}
    most = max(1, HELD // max(1, outputs[0].numel())) if len(y) else 1
    for at in (slice(first, first + most) for first in range(0, len(y), most)) if found else ():
        seen = Judged(outputs[at], y[at], live[at], None if scale is None else scale[at])
        for name, parts in found.items():
            parts.append(METRICS[name].measure(seen))
    return {name: torch.cat(parts) for name, parts in found.items()}


def value(name: str, outputs: Any, y: Any, weights: Any = None, scale: float = 1.0) -> Any:
    """Return one metric of one client; nan where it is not defined.

    outputs: (rows, classes) logits, or (rows,) or (rows, 1) numbers. weights: how often each row counts, (rows,), by
    default once; or (b, rows), and then b values come out as an array.
    """
    out, truth = torch.as_tensor(outputs), torch.as_tensor(y)
    out = out[None, :, None] if out.dim() == 1 else out[None]
    each = torch.ones(out.shape[1]) if weights is None else torch.as_tensor(weights)
    rows = each.reshape(-1, out.shape[1]).double()
    fits = max(1, HELD // max(1, out.numel()))
    measure, unit = named(name).measure, torch.tensor([float(scale)], dtype=torch.float64)
    found = torch.cat([measure(Judged(out, truth[None], some, unit)) for some in rows.split(fits)])
    return found.numpy() if each.dim() == 2 else float(found[0])
