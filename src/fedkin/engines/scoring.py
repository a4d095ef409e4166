"""Scores of models on clients' samples, in blocks that hold a bounded amount of memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fedkin import metrics
from fedkin.core import losses, tree
from fedkin.core.tree import Model
from fedkin.data.federation import Index
from fedkin.engines.batching import picked
from fedkin.engines.engine import Score
from fedkin.engines.lifting import Logits
from fedkin.engines.network import Network
from fedkin.messages import Tell, nobody
from fedkin.parts import Train

HELD = 2**24  # bytes of models, samples and what is computed from them that are held at once
NUMBER = 8  # bytes of a number that a metric is computed from


@dataclass(frozen=True)
class Block:
    """The outputs of some clients' models on some of their samples: those of these `columns` in each client's list."""

    columns: Tensor  # (width,)
    live: Tensor  # (m, width) whether the client has so many samples
    y: Tensor  # (m, width)
    outputs: Tensor  # (m, width, outputs)


class Scoring:
    """Scores models of one network on the samples (x, y).

    `scale` (n,) says what 1 in y is worth at each client in the target's own unit. With `measure` all metrics of the
    task are computed, else only how many are right, and the loss. `tell` is told how far it is.
    """

    def __init__(self, network: Network, x: Tensor, y: Tensor, scale: Tensor | None = None, tell: Tell = nobody):
        self.network, self.x, self.y, self.device, self.tell = network, x, y, x.device, tell
        self.scale, self.task = scale, "regress" if y.is_floating_point() else "classify"

    # each client's own model

    def each(self, stacked: Model, ids: Tensor, index: Index, part: Train | None = None, measure: bool = True) -> Score:
        """Score each client's own model on its own samples; `part` says how a personal model predicts."""
        correct, loss = torch.zeros(len(ids), dtype=torch.int64), torch.zeros(len(ids), dtype=torch.float64)
        values = self.unknown(len(ids)) if measure else {}
        for at, blocks in self.groups(stacked, ids, index, part):
            for block in blocks:
                hit, cost = judged(block.outputs, block.y)
                correct[at] += (hit & block.live).sum(1)
                loss[at] += torch.where(block.live, cost, 0.0).sum(1)
            if measure:
                out, y, live = (torch.cat([getattr(b, name) for b in blocks], 1) for name in ("outputs", "y", "live"))
                for name, value in metrics.of_clients(values, out, y, live).items():
                    values[name][at] = value
        scale = None if self.scale is None else self.scale[ids]
        return scored(correct, loss, index.sizes[ids], values, scale)

    def outputs(self, stacked: Model, ids: Tensor, index: Index, part: Train | None = None) -> Tensor:
        """Return what each client's own model says of its own samples, client after client."""  # (R, outputs)
        sizes = index.sizes[ids]
        first = sizes.cumsum(0) - sizes  # the row of each client's first sample
        found = torch.zeros(int(sizes.sum()), self.network.outputs)
        for at, blocks in self.groups(stacked, ids, index, part):
            for block in blocks:
                places = first[at][:, None] + block.columns  # (m, width)
                found[places[block.live]] = block.outputs[block.live].float()
        return found

    @torch.no_grad()
    def groups(
        self, stacked: Model, ids: Tensor, index: Index, part: Train | None
    ) -> Iterator[tuple[Tensor, list[Block]]]:
        """Yield the clients that have samples in groups: their places in `ids`, and their outputs."""
        logits: Logits = self.network.stacked_logits
        if part is not None and part.predicts_itself:
            logits = self.network.lift(lambda model, batch: part.predicted(model, batch, self.network.logits))
        sizes, sample = index.sizes[ids], self.network.footprint
        done, total = 0, int(sizes.sum())
        for at in similar(sizes, sample, tree.size([self.network.model])[1]):
            models, blocks = tree.rows(stacked, at.to(self.device)), []
            for columns in torch.arange(int(sizes[at[0]])).split(max(1, HELD // (len(at) * sample))):
                live = columns < sizes[at][:, None]
                places = index.start[ids[at]][:, None] + torch.where(live, columns, 0)
                rows = index.rows[places].to(self.device)
                out = logits(models, {"x": picked(self.x, rows)})
                blocks.append(Block(columns, live, picked(self.y, rows).cpu(), out.cpu()))
                done += int(live.sum())
                self.tell("scoring samples", done, total)
            yield at, blocks

    # one model

    def one(self, model: Model, index: Index, measure: bool = True) -> Score:
        """Score one model on every client's samples of this index."""
        hit, cost, values = self.rows(model, index, measure)
        ends, zero = index.start, torch.zeros(1, dtype=torch.float64)
        total = lambda values: torch.cat([zero, values.double().cumsum(0)])[ends].diff()  # noqa: E731
        return scored(total(hit).long(), total(cost), index.sizes, values, self.scale)

    def common(self, model: Model, rows: Tensor) -> Score:
        """Score one model on samples that belong to no client; the score has one row."""
        hit, cost, values = self.rows(model, Index.of([rows]))
        return scored(hit.sum()[None], cost.sum()[None], torch.tensor([len(hit)]), values, None)

    def rows(self, model: Model, index: Index, measure: bool = True) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Return whether each sample is classified rightly, its loss, and the metrics of each client."""
        values = self.unknown(len(index)) if measure else {}
        hits: list[Tensor] = []
        costs: list[Tensor] = []
        for first, last, outputs, y in whole_clients(self.looked(model, index.rows), index.start.tolist()):
            hit, cost = judged(outputs, y)
            hits.append(hit)
            costs.append(cost)
            start = index.start[first : last + 1] - index.start[first]
            for at, padded in padded_clients(outputs, y, start) if values else ():
                for name, value in metrics.of_clients(values, **padded).items():
                    values[name][first + at] = value
        return torch.cat(hits), torch.cat(costs), values

    def outputs_one(self, model: Model, index: Index) -> Tensor:
        """Return what one model says of every client's samples of this index, client after client."""  # (R, outputs)
        return torch.cat([outputs.float() for outputs, _ in self.looked(model, index.rows)])

    @torch.no_grad()
    def looked(self, model: Model, rows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the outputs for these samples and their labels, as many at a time as can be held."""
        done = 0
        for some in rows.split(max(1, HELD // self.network.footprint)):
            at = some.to(self.device)
            done += len(some)
            self.tell("scoring samples", done, len(rows))
            out = self.network.stacked_logits(tree.repeated(model, 1), {"x": picked(self.x, at)[None]})[0]
            yield out.cpu(), picked(self.y, at).cpu()

    def unknown(self, m: int) -> dict[str, Tensor]:
        """Return the metrics of m clients that are not computed yet, without those that a score has anyway."""
        names = [name for name in metrics.of_task(self.task) if name not in ("accuracy", "log_loss")]
        return {name: torch.full((m,), torch.nan, dtype=torch.float64) for name in names}


def judged(outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return right or wrong, and the loss, of each sample; a prediction that is not finite is wrong."""
    cost = losses.each(outputs, y)
    # no number is right; any nan or +inf among the logits makes the loss nan
    hit = torch.zeros_like(y, dtype=torch.bool) if y.is_floating_point() else outputs.argmax(-1) == y
    return hit & cost.isfinite(), cost.double()


def scored(correct: Tensor, loss: Tensor, count: Tensor, values: dict[str, Tensor], scale: Tensor | None) -> Score:
    """Return a score, with all metrics of its task where some were computed."""
    score = Score(correct, loss, count)
    found = dict(values)
    if "rmse" in found and scale is not None:
        found["rmse"] = found["rmse"] * scale.double()
    if "auc" in found:
        mean = torch.where(loss.isfinite(), loss / count, torch.where(count > 0, torch.inf, torch.nan))
        found |= {"accuracy": score.accuracy, "log_loss": mean}
    return replace(score, values={name: found[name] for name in metrics.METRICS if name in found})


def similar(sizes: Tensor, sample: int, more: int) -> Iterator[Tensor]:
    """Yield the places of those that have samples in groups that are held at once, the largest first.

    A sample takes so many bytes, padded to the largest of its group, and each client so many more. At most half of a
    group is padding; what does not fit has a group of its own.
    """
    order, start = sizes.argsort(descending=True, stable=True), 0
    while start < len(order) and sizes[order[start]] > 0:
        width = int(sizes[order[start]])
        fits = max(1, HELD // (width * sample + more))
        alike = int((sizes[order[start:]] * 2 >= width).sum())
        at = order[start : start + min(fits, alike)]
        yield at
        start += len(at)


def whole_clients(
    parts: Iterable[tuple[Tensor, Tensor]], start: list[int]
) -> Iterator[tuple[int, int, Tensor, Tensor]]:
    """Yield the same rows in parts that have all rows of the clients from `first` to before `last`, with both.

    start[i] is the row with which client i begins. Rows are held until all those of a client are there.
    """
    held: list[tuple[Tensor, Tensor]] = []
    first, seen = 0, 0
    for part in parts:
        held, seen = [*held, part], seen + len(part[1])
        last = bisect_right(start, seen) - 1
        if last > first:
            outputs, y = (torch.cat(several) for several in zip(*held, strict=True))
            cut = start[last] - start[first]
            yield first, last, outputs[:cut], y[:cut]
            held, first = [(outputs[cut:], y[cut:])], last


def padded_clients(outputs: Tensor, y: Tensor, start: Tensor) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
    """Yield clients whose rows lie one after another in groups: their places, and their rows as padded stacks."""
    sizes = start.diff()
    for at in similar(sizes, NUMBER * outputs.shape[-1], 0):
        columns = torch.arange(int(sizes[at[0]]))
        live = columns < sizes[at][:, None]
        rows = start[at][:, None] + torch.where(live, columns, 0)
        yield at, {"outputs": outputs[rows], "y": y[rows], "live": live}
