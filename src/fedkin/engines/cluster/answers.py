"""What several actors answered, put in the order of the clients that were asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fedkin.engines.engine import Score


@dataclass(frozen=True)
class Answers:
    """The answers of each actor, and the positions of its clients among those that were asked for."""

    found: dict[int, tuple[Any, ...]]
    at: dict[int, Tensor]

    @property
    def first(self) -> list[Any]:
        """What each actor answered; all else that it returned lies in Ray's memory."""
        return [answer for answer, *_ in self.found.values()]

    @property
    def order(self) -> Tensor:
        """Which of the rows of all actors, one actor after another, comes first, second, ..."""  # (m,)
        return torch.cat([self.at[member] for member in self.found]).argsort()

    def scores(self) -> Score:
        """Join scores with a row for each client."""
        scores, order = self.first, self.order
        names = ("correct", "loss", "count")
        correct, loss, count = (torch.cat([getattr(score, name) for score in scores])[order] for name in names)
        values = {name: torch.cat([score.values[name] for score in scores])[order] for name in scores[0].values}
        return Score(correct, loss, count, values)

    def rows(self, sizes: Tensor) -> Tensor:
        """Join what was said of samples, of which each client has so many, client after client."""
        at = torch.cat([self.at[member] for member in self.found])
        return torch.cat(self.first)[at.repeat_interleave(sizes[at]).argsort(stable=True)]
