"""Scores of models on clients' samples, in blocks that hold a bounded amount of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap

from fedkin.core import tree
from fedkin.core.tree import Batch, Model
from fedkin.data.federation import Index
from fedkin.engines.batching import picked
from fedkin.engines.engine import Score
from fedkin.engines.network import Network
from fedkin.parts import Train

Logits = Callable[[Model, Batch], Tensor]

HELD = 2**24  # bytes of models, samples and what is computed from them that are held at once


@dataclass(frozen=True)
class Block:
    """The outputs of some clients' models on some of their samples: those of these `columns` in each client's list."""

    columns: Tensor  # (width,)
    live: Tensor  # (m, width) whether the client has so many samples
    y: Tensor  # (m, width)
    outputs: Tensor  # (m, width, outputs)


class Scoring:
    """Scores models of one network on the samples (x, y)."""

    def __init__(self, network: Network, x: Tensor, y: Tensor):
        self.network, self.x, self.y, self.device = network, x, y, x.device

    # each client's own model

    def each(self, stacked: Model, ids: Tensor, index: Index, part: Train | None = None) -> Score:
        """Score each client's own model on its own samples; `part` says how a personal model predicts."""
        correct, loss = torch.zeros(len(ids), dtype=torch.int64), torch.zeros(len(ids), dtype=torch.float64)
        for at, blocks in self.groups(stacked, ids, index, part):
            for block in blocks:
                hit, cost = judged(block.outputs, block.y)
                correct[at] += (hit & block.live).sum(1)
                loss[at] += torch.where(block.live, cost, 0.0).sum(1)
        return Score(correct, loss, index.sizes[ids])

    def outputs(self, stacked: Model, ids: Tensor, index: Index, part: Train | None = None) -> Tensor:
        """Return what each client's own model says of its own samples, client after client."""  # (R, outputs)
        sizes = index.sizes[ids]
        first = sizes.cumsum(0) - sizes  # the row of each client's first sample
        found = torch.zeros(int(sizes.sum()), self.network.outputs)
        for at, blocks in self.groups(stacked, ids, index, part):
            for block in blocks:
                places = first[at][:, None] + block.columns  # (m, width)
                found[places[block.live]] = block.outputs.cpu()[block.live].float()
        return found

    @torch.no_grad()
    def groups(
        self, stacked: Model, ids: Tensor, index: Index, part: Train | None
    ) -> Iterator[tuple[Tensor, list[Block]]]:
        """Yield the clients that have samples in groups, the largest first: their places in `ids`, and their outputs.

        A group is small enough to be held whole or has one client.
        """
        logits: Logits = self.network.stacked_logits
        if part is not None and part.predicts_itself:
            logits = vmap(lambda model, batch: part.predicted(model, batch, self.network.logits))
        sizes = index.sizes[ids]
        order = sizes.argsort(descending=True, stable=True)
        sample, model = self.network.footprint, tree.size([self.network.model])[1]  # bytes
        start = 0
        while start < len(order) and sizes[order[start]] > 0:
            width = int(sizes[order[start]])
            fits = max(1, HELD // (width * sample + model))
            similar = int((sizes[order[start:]] * 2 >= width).sum())  # at most half of a block is padding
            at = order[start : start + min(fits, similar)]
            block = max(1, HELD // (len(at) * sample))
            models, blocks = tree.rows(stacked, at.to(self.device)), []
            for columns in torch.arange(width).split(block):
                live = columns < sizes[at][:, None]
                places = index.start[ids[at]][:, None] + torch.where(live, columns, 0)
                rows = index.rows[places].to(self.device)
                out = logits(models, {"x": picked(self.x, rows)})
                blocks.append(Block(columns, live, picked(self.y, rows), out))
            yield at, blocks
            start += len(at)

    # one model

    def one(self, model: Model, index: Index) -> Score:
        """Score one model on every client's samples of this index."""
        hit, cost = self.rows(model, index.rows)
        ends, zero = index.start, torch.zeros(1, dtype=torch.float64)
        total = lambda values: torch.cat([zero, values.double().cumsum(0)])[ends].diff()  # noqa: E731
        return Score(total(hit).long(), total(cost), index.sizes)

    def rows(self, model: Model, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return whether each of these samples is classified rightly, and its loss."""
        hits, costs = zip(*(judged(out, y) for out, y in self.looked(model, rows)), strict=True)
        return torch.cat(hits), torch.cat(costs)

    def outputs_one(self, model: Model, index: Index) -> Tensor:
        """Return what one model says of every client's samples of this index, client after client."""  # (R, outputs)
        return torch.cat([out.cpu().float() for out, _ in self.looked(model, index.rows)])

    @torch.no_grad()
    def looked(self, model: Model, rows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the outputs for these samples and their labels, as many at a time as can be held."""
        for some in rows.split(max(1, HELD // self.network.footprint)):
            at = some.to(self.device)
            yield self.network.logits(model, {"x": picked(self.x, at)}), picked(self.y, at)


def judged(out: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return right or wrong, and the loss, of each sample; a prediction that is not finite is wrong."""
    cost = F.cross_entropy(out.flatten(0, -2), y.flatten(), reduction="none").view(y.shape)
    hit = (out.argmax(-1) == y) & cost.isfinite()  # any nan or +inf among the logits makes the loss nan
    return hit.cpu(), cost.cpu().double()
