"""A loop over clients, one at a time: slow, readable, and the reference every other engine is compared with."""

from __future__ import annotations

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Batch, Message, Model
from fedkin.engines.batching import Pass
from fedkin.engines.simulation import Simulation
from fedkin.engines.team import Tick
from fedkin.messages import Work
from fedkin.parts import Train


class ClientError(RuntimeError):
    """Training failed at one client; the message says at which client, in which round and in which part."""


class Plain(Simulation):
    """Trains one client after another."""

    def local_pass(
        self, part: Train, sent: Message, got: Tensor, mine: Message, work: Pass, round: int, tick: Tick
    ) -> tuple[Message, Message]:
        found = []
        for i, client in enumerate(work.ids.tolist()):
            try:
                found.append(self.train_one(part, row_of(sent, got, i), mine, work, round, i, tick))
            except Exception as error:
                name = self.federation.clients[client] if self.federation.clients else client
                where = f"client {name}, round {round}, part {type(part).__name__}"
                raise ClientError(f"{where}: {type(error).__name__}: {error}") from error
        slots, uploads = zip(*found, strict=True)
        return stacked(slots), stacked(uploads)

    def train_one(
        self, part: Train, sent: Message | None, mine: Message, work: Pass, round: int, i: int, tick: Tick
    ) -> tuple[Message, Message]:
        """Train the i-th client of a chunk and return its private slots and its upload."""
        own = tree.each(lambda stack: tree.row(stack, i), mine)
        carry = part.begin(sent, own)
        steps, rate = int(work.steps[i]), part.rate(round)
        for step in range(steps):
            first = step * part.batches_per_step
            numbers = range(first, first + part.batches_per_step)
            some = [self.batching.batch(work, number, slice(i, i + 1), self.network, part) for number in numbers]
            carry = part.step(carry, tuple(tree.row(batch, 0) for batch in some), self.network, rate)
            tick((i + (step + 1) / steps) / len(work.ids))
        if part.reflects:
            held = self.batching.held(part, work.ids[i : i + 1])
            carry = part.reflect(carry, sent, own, tree.row(held, 0), self.network)
        size = float(self.batching.sizes[int(work.ids[i])])
        did = Work(*(torch.tensor(value, dtype=self.dtype) for value in (size, float(steps), rate)))
        return part.end(carry, sent, own, did)

    def chunk_personal(self, part: Train, sent: Message, got: Tensor, mine: Message, batch: Batch) -> Model:
        def one(i: int) -> Model:
            own = tree.each(lambda stack: tree.row(stack, i), mine)
            return part.personal_model(row_of(sent, got, i), own, tree.row(batch, i), self.network)

        return tree.stacked([one(i) for i in range(len(batch["y"]))])

    def chunk_met(self, part: Train, sent: Message, mine: Message, batch: Batch) -> Message:
        def one(i: int) -> Message:
            here, own = (tree.each(lambda stack: tree.row(stack, i), message) for message in (sent, mine))
            return part.meet(here, own, tree.row(batch, i), self.network)

        return stacked(tuple(one(i) for i in range(len(batch["y"]))))


def row_of(sent: Message, got: Tensor, i: int) -> Message | None:
    """Return what the i-th client of a chunk was sent; None if nothing."""
    return tree.each(lambda stack: tree.row(stack, int(got[:i].sum())), sent) if got[i] else None


def stacked(messages: tuple[Message, ...]) -> Message:
    """Stack the messages of single clients."""
    return {name: tree.stacked([message[name] for message in messages]) for name in messages[0]}
