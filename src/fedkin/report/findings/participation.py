"""Who took part in which round of a run, and whether the update of that client counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

import numpy as np

from fedkin.runs import statistics
from fedkin.runs.run import Run


@dataclass(frozen=True)
class Participation:
    """One run, round by round."""

    names: Sequence[str]  # of the clients
    known_irrelevant: Sequence[bool] | None  # what was written down of the scenario; None if nothing was
    ids: list[np.ndarray]  # who was selected
    kept: list[np.ndarray] | None  # how far each one's update counted, nan without a reply; None if nothing is sent

    @property
    def n(self) -> int:
        return len(self.names)

    @property
    def rounds(self) -> int:
        return len(self.ids)

    @cached_property
    def irrelevant(self) -> np.ndarray | None:
        """Which clients are irrelevant; None if that is not known or if no client is."""  # (n,)
        found = self.known_irrelevant
        return np.array(found, dtype=bool) if found is not None and any(found) else None

    @cached_property
    def order(self) -> np.ndarray:
        """Clients by number, the irrelevant ones last."""  # (n,)
        return np.arange(self.n) if self.irrelevant is None else np.argsort(self.irrelevant, kind="stable")

    @cached_property
    def counts(self) -> dict[str, np.ndarray]:
        """In how many rounds each client was selected, replied and was left out."""  # (n,) each
        return statistics.participation(self.n, self.ids, self.kept)

    @property
    def selected(self) -> np.ndarray:
        """In how many rounds each client was selected."""  # (n,)
        return self.counts["selected"]

    @property
    def replied(self) -> np.ndarray:
        """In how many rounds the server got an update of each client; all rounds where nothing is sent."""  # (n,)
        return self.selected if self.kept is None else self.counts["replied"]

    @property
    def left_out(self) -> np.ndarray:
        """In how many rounds the update of each client came and did not count at all."""  # (n,)
        return self.counts["left_out"]

    @property
    def complete(self) -> bool:
        """Whether every client took part in every round and every update counted."""
        return bool((self.selected == self.rounds).all()) and not self.lost

    @property
    def lost(self) -> bool:
        """Whether any update did not count in full, or never came."""
        return self.kept is not None and any((~(kept == 1)).any() for kept in self.kept)

    def called(self, client: int) -> str:
        return f"client {self.names[client]}"

    def groups(self, most: int) -> list[np.ndarray]:
        """The clients in order, in at most so many groups. No group has both relevant and irrelevant clients. Groups of
        one kind have the same number of clients, give or take one."""
        truth = np.zeros(self.n, dtype=bool) if self.irrelevant is None else self.irrelevant[self.order]
        kinds = [ids for ids in (self.order[~truth], self.order[truth]) if len(ids)]
        if self.n <= most:
            return [ids[i : i + 1] for ids in kinds for i in range(len(ids))]
        numbers = [max(1, most * len(ids) // self.n) for ids in kinds]
        numbers[0] -= max(0, sum(numbers) - most)
        return [group for ids, number in zip(kinds, numbers, strict=True) for group in np.array_split(ids, number)]

    def group_name(self, ids: np.ndarray) -> str:
        """What a group of clients is called. The name is escaped, because plotly.js reads HTML in texts."""
        kind = "" if self.irrelevant is None else ("irrelevant " if self.irrelevant[ids[0]] else "relevant ")
        if len(ids) == 1:
            return escape(f"{kind}client {self.names[ids[0]]}")
        return escape(f"{len(ids)} {kind}clients, {self.names[ids[0]]} to {self.names[ids[-1]]}")


def mean_of(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """The mean of the values that are not nan; nan where all are."""
    known = ~np.isnan(values)
    count = known.sum(axis)
    return np.where(count > 0, np.where(known, values, 0).sum(axis) / np.maximum(count, 1), np.nan)


def participation_of(run: Run) -> Participation:
    """Return who took part in which round of a run. `kept` is None where the method sends nothing, or where an older
    version wrote the run and did not write it down."""
    sends = any(line["replied"] for line in run.lines)
    about = run.about_clients
    return Participation(about["names"], about.get("irrelevant"), run.selected, run.kept if sends else None)
