"""Divides the clients of a round into chunks, and the chunks among the cores: one process, or a crew.

A chunk's size and the number of cores change how long a round takes and nothing else: each client's numbers are those
that it would have alone, to the last bit, where `repeatable`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from time import perf_counter
from typing import Any, Protocol
from warnings import warn

import numpy as np
import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.engines.crew import Crew, Helper, Job, Lost, possible
from fedkin.errors import BadInput
from fedkin.messages import Message, Sent
from fedkin.parts import Train

PATIENCE = 0.3  # seconds of training after which a crew is hired
WORTH = 0.002  # seconds of training for which a hired crew is asked
AGAIN = 50  # rounds after which a crew that made rounds slower is asked again
LATELY = 0.3  # how much the last round counts in a pace
HELD = 2**28  # bytes of slots and uploads that are on their way between processes at once

Tick = Callable[[float], None]
Chunk = Tensor  # (m,) clients
Share = list[Chunk]  # what one core trains, chunk after chunk
Trained = tuple[Tensor, Message, Message, Message]
# clients, what they held, what they hold now, what they upload; where there are several shares the last two may lie in
# a helper's memory, until its next job


class Trainer(Protocol):
    """Trains the clients of one chunk: an engine."""

    slots: Any

    def trained_chunk(
        self, part: Train, sent: Sent, chunk: Chunk, mine: Message, round: int, tick: Tick
    ) -> tuple[Message, Message]:
        """Return the private slots and the uploads of these clients after training, stacked."""
        ...


class Team:
    """The process of a run and, after some seconds of training, its crew. `divisible`: a chunk may be cut anywhere."""

    def __init__(self, trainer: Trainer, chunk: int, cores: int, client_bytes: int, divisible: bool):
        self.trainer, self.chunk, self.divisible = trainer, chunk, divisible
        self.cores = cores if possible() else 1
        self.most = max(1, HELD // max(1, client_bytes))  # clients on their way at once
        self.crew: Crew | None = None
        self.part: Train | None = None  # the part that the crew knows
        self.seconds = 0.0  # of training in this process alone
        self.paces: dict[str, float] = {}  # seconds of a client's step lately: "alone", and with "helpers"
        self.slow = 0  # rounds since the crew made rounds slower
        self.helping = False  # whether the crew is asked in this round
        self.costs = np.zeros(0, dtype=np.int64)  # steps of each client of the round

    def divided(self, steps: np.ndarray, ids: Tensor, even: bool) -> list[Chunk]:
        """Return the clients in chunks, those with the most steps first.

        Where not all batches are `even`, a chunk pads its batches to the longest of them, so that a client's last
        digits depend on its chunk: then chunks are those of one core.
        """
        self.costs = np.zeros(int(ids.max()) + 1 if len(ids) else 0, dtype=np.int64)
        self.costs[ids.numpy()] = steps
        order = ids[torch.from_numpy(np.argsort(-steps, kind="stable"))]
        size, self.helping = self.chunk, self.helps(int(steps.sum()))
        if even and self.divisible and self.helping:
            waves = -(-len(ids) // (self.cores * self.chunk))
            size = -(-len(ids) // (self.cores * waves))
        return list(order.split(size)) if len(order) else []

    def helps(self, steps: int) -> bool:
        """Whether a crew is worth its while in a round of so many steps of clients.

        Where other work leaves no core free it may be slower than this process alone; it is asked again after a while.
        """
        alone = self.paces.get("alone", 0.0)
        if self.cores == 1 or self.seconds < PATIENCE or alone * steps < WORTH:
            return False
        if self.paces.get("helpers", 0.0) <= alone:
            return True
        self.slow += 1
        if self.slow < AGAIN:
            return False
        self.slow = 0
        del self.paces["helpers"]  # only the next try counts
        return True

    def taken(self, left: list[Chunk]) -> list[Share]:
        """Take the next chunks from those that are left: one for this process, or a share for every core."""
        if len(left) == 1 or not self.helping:
            return [[left.pop(0)]]
        shares: list[Share] = [[] for _ in range(self.cores)]
        loads, clients = [0] * self.cores, 0
        while left and clients < self.most:
            least = loads.index(min(loads))
            shares[least].append(left.pop(0))
            loads[least] += self.cost(shares[least][-1])
            clients += len(shares[least][-1])
        return [share for share in shares if share]

    def timed(self, who: str, start: float, shares: list[Share]) -> None:
        """Note how long these shares took since `start`."""
        steps = sum(self.cost(chunk) for share in shares for chunk in share)
        pace = (perf_counter() - start) / max(1, steps)
        self.paces[who] = pace + (1 - LATELY) * (self.paces.get(who, pace) - pace)

    def cost(self, chunk: Chunk) -> int:
        """How many steps the clients of a chunk take together."""
        return int(self.costs[chunk.numpy()].sum())

    def trained(self, part: Train, sent: Sent, shares: list[Share], round: int, tick: Tick) -> Iterator[Trained]:
        """Train these shares, the first in this process and the others by the crew, and yield what came out."""
        helpers = len(shares) > 1 and self.hired(part)
        start = perf_counter()
        if helpers:
            yield from self.side_by_side(part, sent, shares, round, tick)
        for share in [] if helpers else shares:
            yield from self.alone(part, sent, share, round, tick)
        self.timed("helpers" if helpers else "alone", start, shares)
        self.seconds += 0.0 if helpers else perf_counter() - start

    def alone(self, part: Train, sent: Sent, share: Share, round: int, tick: Tick) -> Iterator[Trained]:
        """Train a share in this process; where memory is short, once more with chunks of half the size."""
        for chunk in share:
            mine = self.trainer.slots.read(chunk)
            try:
                found = self.trainer.trained_chunk(part, sent, chunk, mine, round, tick)
                yield chunk, mine, *found
            except (MemoryError, RuntimeError) as error:
                if not short_of_memory(error):
                    raise
                yield from self.halved(part, sent, chunk, round, tick)

    def halved(self, part: Train, sent: Sent, chunk: Chunk, round: int, tick: Tick) -> Iterator[Trained]:
        """Train the clients of a chunk that did not fit into memory in two halves, and all later ones likewise."""
        self.chunk = max(1, len(chunk) // 2)
        for half in chunk.split(self.chunk):
            mine = self.trainer.slots.read(half)
            try:
                yield half, mine, *self.trainer.trained_chunk(part, sent, half, mine, round, tick)
            except (MemoryError, RuntimeError) as error:
                if not short_of_memory(error):
                    raise
                raise BadInput(
                    f"There is not enough memory to train {len(half)} clients at once; choose a smaller --chunk or "
                    "model. What was saved can be resumed."
                ) from error

    def hired(self, part: Train) -> bool:
        """Whether there is a crew that knows this part; hire one if there is none."""
        if self.crew is None:
            self.part = part
            self.crew = Crew(self.cores - 1, self.helped)
        return part is self.part or part == self.part

    def helped(self, job: Job) -> Job:
        """Do a job of `side_by_side`, in a helper."""
        assert self.part is not None
        (round, chunks), given = job["about"], job.get("sent", {})
        sent = Sent(given.get("ids", torch.zeros(0, dtype=torch.int64)), given.get("shared", {}), given.get("own", {}))
        share, start, found = [torch.tensor(chunk) for chunk in chunks], 0, []
        for chunk in share:
            at = slice(start, start + len(chunk))
            mine = tree.each(lambda model, at=at: tree.rows(model, at), job.get("mine", {}))
            found.append(self.trainer.trained_chunk(self.part, sent, chunk, mine, round, lambda share: None))
            start += len(chunk)
        return {"after": joined([after for after, _ in found]), "upload": joined([upload for _, upload in found])}

    def side_by_side(self, part: Train, sent: Sent, shares: list[Share], round: int, tick: Tick) -> Iterator[Trained]:
        """Train one share in this process and each other one in a helper."""
        assert self.crew is not None
        given: list[tuple[Helper, Share, Message]] = []
        lost: list[Share] = []
        for helper, share in zip(self.crew.helpers, shares[1:], strict=False):
            ids = torch.cat(share)
            mine, to = self.trainer.slots.read(ids), torch.isin(sent.ids, ids)
            own = tree.each(lambda model, to=to: tree.rows(model, to), sent.own)
            message = {"ids": sent.ids[to], "shared": sent.shared, "own": own}
            try:
                helper.give(
                    {"about": (round, [chunk.tolist() for chunk in share]), "sent": message, "mine": dict(mine)}
                )
                given.append((helper, share, mine))
            except Lost:
                lost.append(share)
        for chunk in shares[0]:
            mine = self.trainer.slots.read(chunk)
            yield chunk, mine, *self.trainer.trained_chunk(part, sent, chunk, mine, round, tick)
        for helper, share, mine in given:
            try:
                found = helper.take()
            except Lost:
                lost.append(share)
                continue
            yield torch.cat(share), mine, found.get("after", {}), found.get("upload", {})
        if lost:
            self.close()
            self.cores, self.chunk = 1, max(1, self.chunk // 2)
            warn("A helper process was killed, perhaps for lack of memory; the run goes on with one.", stacklevel=2)
            for share in lost:
                halves = [half for chunk in share for half in chunk.split(self.chunk)]
                yield from self.alone(part, sent, halves, round, tick)

    def close(self) -> None:
        """Let the crew go."""
        if self.crew is not None:
            self.crew.close()
            self.crew = None


def joined(messages: list[Message]) -> Message:
    """Return the messages of several chunks as one, stacked."""
    return {name: tree.joined([message[name] for message in messages]) for name in messages[0]}


def short_of_memory(error: Exception) -> bool:
    """Whether an error says that memory ran out."""
    return isinstance(error, MemoryError) or "allocate memory" in str(error) or "out of memory" in str(error)


@cache
def repeatable() -> bool:
    """Whether products give the same bits wherever their factors lie in memory.

    MKL does so where MKL_CBWR was set before its first use, as `import fedkin` does.
    """
    many = torch.linspace(-1, 1, 8 * 5 * 17).reshape(8, 5, 17).sin()
    other = torch.linspace(-2, 2, 8 * 10 * 17).reshape(8, 10, 17).cos()
    together = torch.bmm(many, other.mT)
    return all(
        torch.equal(together[i], torch.bmm(many[i, None].clone(), other[i, None].clone().mT)[0]) for i in range(8)
    )
