"""Fine-tunes models at a new site, by as many local passes as its own training rows ask for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Model
from fedkin.data.federation import Federation, Index
from fedkin.data.holdout import split
from fedkin.engines.engine import Engine
from fedkin.messages import Sent
from fedkin.runs.experiment import Experiment
from fedkin.runs.setup import engine_of, on_this_machine, set_up

PASSES = (1, 2, 5, 10, 20, 50)  # numbers of local passes that are tried
HELD = 0.25  # the share of the training rows that judges them


@dataclass(frozen=True)
class Tuning:
    """Fine-tunes the models of all splits at once; split k is client k of both engines."""

    whole: Engine  # trains on all training rows of a split
    inner: Engine  # trains on three quarters of them, and has the rest as its test rows
    experiment: Experiment  # in which the site trains alone; its network and its training are used
    ids: Tensor  # (splits,) the clients of both engines
    first: int  # the round whose batches the first pass takes

    def __call__(self, stacked: Model) -> Model:
        """Return each split's model after the number of passes that had the lowest loss on rows held out of its
        training rows. The test rows of the split are not looked at."""
        tried = [count for count in PASSES if count <= max(1, self.experiment.rounds)]
        losses = [
            self.inner.score(model, self.ids, "test").mean_loss
            for count, model in self.passes(self.inner, stacked, tried[-1])
            if count in tried
        ]
        best = torch.stack(losses).nan_to_num(torch.inf).argmin(0)  # (splits,)
        chosen = torch.tensor(tried)[best]
        found = stacked
        for count, model in self.passes(self.whole, stacked, int(chosen.max())):
            now = chosen == count
            found = tree.mapped(lambda new, old, now=now: torch.where(per_row(now, new), new, old), model, found)
        return found

    def passes(self, engine: Engine, stacked: Model, most: int) -> Iterator[tuple[int, Model]]:
        """Yield the models after 1, 2, ... local passes of plain SGD, each from the one before."""
        for count in range(1, most + 1):
            sent = Sent(self.ids, own={"model": stacked})
            train, number = self.experiment.method.train, self.first + count - 1
            stacked = engine.train(train, sent, self.ids, number, keep=False).upload["model"]
            yield count, stacked


@contextmanager
def tuning(experiment: Experiment, federation: Federation, first: int) -> Iterator[Tuning]:
    """Build the engines that fine-tune; they are closed when the block ends."""
    within, experiment = inner(federation), on_this_machine(experiment)
    with (
        engine_of(experiment, federation, set_up(experiment, federation)) as whole,
        engine_of(replace(experiment, data=within), within, set_up(experiment, within)) as part,
    ):
        yield Tuning(whole, part, experiment, torch.arange(federation.n), first)


def inner(federation: Federation) -> Federation:
    """Return the federation of the training rows alone: three quarters to train, the rest to test."""
    parts = [
        split(rows.numpy(), HELD, 0.0, 0, f"{name} within")
        for name, rows in zip(federation.names, federation.train.lists(), strict=True)
    ]
    train, held = Index.of([rows for rows, _, _ in parts]), Index.of([rows for _, _, rows in parts])
    return replace(federation, train=train, test=held)


def per_row(values: Tensor, like: Tensor) -> Tensor:
    """Return a value for each row in a shape that spreads over the rows of another tensor."""
    return values.reshape(-1, *[1] * (like.dim() - 1)).to(like.device)
