"""What happened in a round, for the record: who took part, what was sent, what counted, how long it took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

import torch
from torch import Tensor

from fedkin.core import tree
from fedkin.messages import Reply, Sent


@dataclass
class Traffic:
    """The messages that were used, counted in models (uploads, downloads) and in bytes."""

    uploads: float = 0.0
    downloads: float = 0.0
    bytes_up: int = 0
    bytes_down: int = 0

    def up(self, reply: Reply, like: int) -> None:
        """Count what the clients uploaded; a model has `like` numbers."""
        numbers, size = reply.size()
        self.uploads, self.bytes_up = self.uploads + numbers / like, self.bytes_up + size

    def down(self, sent: Sent, like: int) -> None:
        """Count what was sent to the clients; a model has `like` numbers."""
        shared, own = tree.size(sent.shared.values()), tree.size(sent.own.values())
        self.downloads += (shared[0] * len(sent.ids) + own[0]) / like
        self.bytes_down += shared[1] * len(sent.ids) + own[1]


@dataclass
class Log:
    """One round. `sent` and `reply` are the messages themselves, for as long as somebody looks at the round."""

    round: int
    selected: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))  # (m,)
    weights: Tensor = field(default_factory=lambda: torch.zeros(0))  # (m,) how far each update counted; nan: no reply
    dropped: list[int] = field(default_factory=list)  # clients whose training or upload was not finite, or did not fit
    clipped: list[int] = field(default_factory=list)  # clients whose upload was far too large, and was shortened
    traffic: Traffic = field(default_factory=Traffic)
    seconds: dict[str, float] = field(default_factory=dict)
    spent: dict[str, float] = field(default_factory=dict)  # the same seconds by the rows of a profile
    sent: Sent | None = None
    reply: Reply | None = None  # without the dropped uploads

    @property
    def replied(self) -> int:
        """How many clients replied."""
        return 0 if self.reply is None else len(self.reply.ids)

    @property
    def has_replied(self) -> Tensor:
        """Which of the selected clients replied."""  # (m,) bool
        return ~self.weights.isnan()

    @property
    def counted(self) -> float:
        """How many updates counted: the sum of their weights."""
        return float(self.weights.nansum())

    @contextmanager
    def timed(self, what: str, row: str) -> Iterator[None]:
        """Add the seconds that the block takes to `seconds[what]`, and to this row of a profile."""
        start = perf_counter()
        yield
        took = perf_counter() - start
        self.seconds[what] = self.seconds.get(what, 0.0) + took
        self.spent[row] = self.spent.get(row, 0.0) + took
