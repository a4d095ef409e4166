"""A loop over clients, one at a time: slow, readable, and the reference every other engine is compared with."""

from __future__ import annotations

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.core.tree import Batch, Message, Model
from fedkin.engines.simulation import Pass, Simulation
from fedkin.messages import Work
from fedkin.parts import Train


class ClientError(RuntimeError):
    """Training failed at one client; says which, in which round, and in which part."""


class Plain(Simulation):
    name = "plain"

    def local_pass(
        self, part: Train, sent: Message, got: Tensor, mine: Message, work: Pass, round: int
    ) -> tuple[Message, Message]:
        found = []
        for i, client in enumerate(work.ids.tolist()):
            try:
                found.append(self.one(part, row_of(sent, got, i), mine, work, round, i))
            except Exception as error:
                name = self.federation.clients[client] if self.federation.clients else client
                where = f"client {name}, round {round}, part {type(part).__name__}"
                raise ClientError(f"{where}: {type(error).__name__}: {error}") from error
        slots, uploads = zip(*found, strict=True)
        return stacked(slots), stacked(uploads)

    def one(
        self, part: Train, sent: Message | None, mine: Message, work: Pass, round: int, i: int
    ) -> tuple[Message, Message]:
        own = tree.each(lambda stack: tree.row(stack, i), mine)
        carry = part.begin(sent, own)
        steps, rate = int(work.steps[i]), part.rate(round)
        for step in range(steps):
            some = [
                tree.row(self.batch(work, step * part.batches_per_step + b, slice(i, i + 1), part), 0)
                for b in range(part.batches_per_step)
            ]
            carry = part.step(carry, tuple(some), self.network, rate)
        size = float(self.sizes[int(work.ids[i])])
        did = Work(*(torch.tensor(value, dtype=self.dtype) for value in (size, float(steps), rate)))
        return part.end(carry, sent, own, did)

    def chunk_personal(self, part: Train, sent: Message, got: Tensor, mine: Message, batch: Batch) -> Model:
        def one(i: int) -> Model:
            own = tree.each(lambda stack: tree.row(stack, i), mine)
            return part.personal_model(row_of(sent, got, i), own, tree.row(batch, i), self.network)

        return tree.stacked([one(i) for i in range(len(batch["y"]))])


def row_of(sent: Message, got: Tensor, i: int) -> Message | None:
    """What the i-th client of a chunk was sent; None if nothing."""
    return tree.each(lambda stack: tree.row(stack, int(got[:i].sum())), sent) if got[i] else None


def stacked(messages: tuple[Message, ...]) -> Message:
    return {name: tree.stacked([message[name] for message in messages]) for name in messages[0]}
