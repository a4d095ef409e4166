"""Scores of models on clients' samples, in blocks that hold a bounded amount of memory."""

from __future__ import annotations

from collections.abc import Callable

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
from fedkin.messages import Tell, nobody
from fedkin.parts import Train

Logits = Callable[[Model, Batch], Tensor]

HELD = 2**24  # bytes of models, samples and what is computed from them that are held at once


class Scoring:
    """Scores models of one network on the samples (x, y)."""

    def __init__(self, network: Network, x: Tensor, y: Tensor, tell: Tell = nobody):
        self.network, self.x, self.y, self.device, self.tell = network, x, y, x.device, tell

    def each(self, stacked: Model, ids: Tensor, index: Index, part: Train | None = None) -> Score:
        """Score each client's own model on its own samples; `part` says how a personal model predicts."""
        logits: Logits = self.network.stacked_logits
        if part is not None and part.predicts_itself:
            logits = vmap(lambda model, batch: part.predicted(model, batch, self.network.logits))
        sizes = index.sizes[ids]
        correct, loss = torch.zeros(len(ids), dtype=torch.int64), torch.zeros(len(ids), dtype=torch.float64)
        order = sizes.argsort(descending=True, stable=True)
        sample, model = self.network.footprint, tree.size([self.network.model])[1]  # bytes
        start = 0
        while start < len(order) and sizes[order[start]] > 0:
            width = int(sizes[order[start]])
            fits = max(1, HELD // (width * sample + model))
            similar = int((sizes[order[start:]] * 2 >= width).sum())  # at most half of a block is padding
            at = order[start : start + min(fits, similar)]
            block = max(1, HELD // (len(at) * sample))
            models = tree.rows(stacked, at.to(self.device))
            for first in range(0, width, block):
                some = torch.arange(first, min(first + block, width))
                live = some < sizes[at][:, None]  # (m, width)
                places = index.start[ids[at]][:, None] + torch.where(live, some, 0)
                hit, cost = self.samples(logits, models, index.rows[places].to(self.device))
                correct[at] += (hit & live).sum(1)
                loss[at] += torch.where(live, cost, 0.0).sum(1)
                self.tell("scoring clients", start + len(at) * min(1.0, (first + block) / width), len(order))
            start += len(at)
        return Score(correct, loss, sizes)

    def one(self, model: Model, index: Index) -> Score:
        """Score one model on every client's samples of this index."""
        hit, cost = self.rows(model, index.rows)
        ends, zero = index.start, torch.zeros(1, dtype=torch.float64)
        total = lambda values: torch.cat([zero, values.double().cumsum(0)])[ends].diff()  # noqa: E731
        return Score(total(hit).long(), total(cost), index.sizes)

    def rows(self, model: Model, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return whether each of these samples is classified rightly, and its loss."""
        block = max(1, HELD // self.network.footprint)
        found = []
        for some in rows.split(block):
            found.append(self.samples(self.network.logits, model, some.to(self.device)))
            self.tell("scoring samples", min(len(found) * block, len(rows)), len(rows))
        hits, costs = zip(*found, strict=True)
        return torch.cat(hits), torch.cat(costs)

    @torch.no_grad()
    def samples(self, logits: Logits, model: Model, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return right or wrong, and the loss, of each sample; a prediction that is not finite is wrong."""
        out = logits(model, {"x": picked(self.x, rows)})
        y = picked(self.y, rows)
        cost = F.cross_entropy(out.flatten(0, -2), y.flatten(), reduction="none").view(y.shape)
        hit = (out.argmax(-1) == y) & cost.isfinite()  # any nan or +inf among the logits makes the loss nan
        return hit.cpu(), cost.cpu().double()
