"""Who took part in which round, and whether it counted: the numbers behind the pictures of selection and relevance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from fedkin.results.study import Entry, Study, Trial

SIDE = 200  # clients, or rounds, of which each has a row, or a column, of its own; more are drawn together
BUDGET = 240_000  # cells that the pictures of all methods may have


@dataclass(frozen=True)
class Attendance:
    """One run, round by round."""

    trial: Trial
    ids: list[np.ndarray]  # who was selected
    kept: list[np.ndarray] | None  # how far each one's update counted, nan without a reply; None if nothing is sent

    @property
    def n(self) -> int:
        return len(self.trial.clients["names"])

    @property
    def rounds(self) -> int:
        return len(self.ids)

    @cached_property
    def irrelevant(self) -> np.ndarray | None:
        """The truth, where the scenario knows it."""  # (n,)
        found = self.trial.clients.get("irrelevant")
        return np.array(found, dtype=bool) if found and any(found) else None

    @cached_property
    def order(self) -> np.ndarray:
        """Clients by number, the irrelevant ones last."""  # (n,)
        return np.arange(self.n) if self.irrelevant is None else np.argsort(self.irrelevant, kind="stable")

    @cached_property
    def selected(self) -> np.ndarray:
        """In how many rounds each client was selected."""  # (n,)
        return times(self.ids, self.n)

    @cached_property
    def replied(self) -> np.ndarray:
        """In how many rounds an update of each client came."""  # (n,)
        if self.kept is None:
            return self.selected
        return times((ids[~np.isnan(kept)] for ids, kept in zip(self.ids, self.kept, strict=True)), self.n)

    @cached_property
    def left_out(self) -> np.ndarray:
        """In how many of those it did not count at all."""  # (n,)
        if self.kept is None:
            return np.zeros(self.n)
        return times((ids[kept == 0] for ids, kept in zip(self.ids, self.kept, strict=True)), self.n)

    @property
    def whole(self) -> bool:
        """Every client took part in every round, and every update counted."""
        return bool((self.selected == self.rounds).all()) and not self.lost

    @property
    def lost(self) -> bool:
        """Whether any update did not count in full, or never came."""
        return self.kept is not None and any((~(kept == 1)).any() for kept in self.kept)

    def called(self, client: int) -> str:
        return f"client {self.trial.clients['names'][client]}"


def times(rounds: Iterable[np.ndarray], n: int) -> np.ndarray:
    """In how many rounds each client is."""  # (n,)
    total = np.zeros(n)
    for ids in rounds:
        total[ids] += 1
    return total


def present(study: Study) -> dict[str, Attendance]:
    """Of every method that has played a round."""
    found = {name: attended(entry) for name, entry in study.entries.items()}
    return {name: one for name, one in found.items() if one}


def attended(entry: Entry) -> Attendance | None:
    """The first seed of a method, as far as it has come; None before its first round."""
    for trial in entry.trials:
        if trial.lines and (trial.folder / "selected.bin").exists():
            return Attendance(trial, trial.run.selected(), judged(trial))
    return None


def judged(trial: Trial) -> list[np.ndarray] | None:
    """How far updates counted; None of methods that send nothing, and of runs that did not write it down."""
    if not (trial.folder / "kept.bin").exists() or not any(line["replied"] for line in trial.lines):
        return None
    kept = trial.run.kept()
    same = [len(row) for row in kept] == [line["selected"] for line in trial.lines]
    return kept if same else None  # begun by a version that did not write it down


def grouped(of: Attendance, most: int) -> list[np.ndarray]:
    """At most so many groups of clients that follow each other, none with relevant and irrelevant ones; within a kind
    as large as each other, but for one client."""
    truth = np.zeros(of.n, dtype=bool) if of.irrelevant is None else of.irrelevant[of.order]
    kinds = [ids for ids in (of.order[~truth], of.order[truth]) if len(ids)]
    if of.n <= most:
        return [ids[i : i + 1] for ids in kinds for i in range(len(ids))]
    numbers = [max(1, most * len(ids) // of.n) for ids in kinds]
    numbers[0] -= max(0, sum(numbers) - most)
    return [group for ids, number in zip(kinds, numbers, strict=True) for group in np.array_split(ids, number)]


def row_name(of: Attendance, ids: np.ndarray) -> str:
    """What a group of clients is called; plotly.js reads HTML in texts."""
    names = of.trial.clients["names"]
    kind = "" if of.irrelevant is None else ("irrelevant " if of.irrelevant[ids[0]] else "relevant ")
    if len(ids) == 1:
        return escape(f"{kind}client {names[ids[0]]}")
    return escape(f"{len(ids)} {kind}clients, {names[ids[0]]} to {names[ids[-1]]}")


@dataclass(frozen=True)
class Picture:
    """Clients against rounds, as the page stores it."""

    stored: dict[str, Any]
    note: str


def pictured(of: Attendance, side: int = SIDE) -> Picture:
    """A cell a client and round, or a group of clients and some rounds: how many were selected, and how many of their
    updates did not count."""
    rows = grouped(of, side)
    wide = -(-of.rounds // side)  # rounds a column
    columns = -(-of.rounds // wide)
    row_of = np.empty(of.n, dtype=int)
    for i, ids in enumerate(rows):
        row_of[ids] = i
    taken, lost = np.zeros((len(rows), columns)), np.zeros((len(rows), columns))
    for r, ids in enumerate(of.ids):
        at = row_of[ids]
        taken[:, r // wide] += np.bincount(at, minlength=len(rows))
        if of.kept is not None:
            lost[:, r // wide] += np.bincount(at, 1 - np.nan_to_num(of.kept[r]), minlength=len(rows))
    ends = [[i * wide + 1, min((i + 1) * wide, of.rounds)] for i in range(columns)]
    cases = np.outer([len(ids) for ids in rows], [last - first + 1 for first, last in ends])
    stored = {
        "rows": [row_name(of, ids) for ids in rows],
        "firsts": [escape(str(of.trial.clients["names"][ids[0]])) for ids in rows],
        "sizes": [len(ids) for ids in rows],
        "columns": ends,
        "relevant": None if of.irrelevant is None else int(sum(not of.irrelevant[ids[0]] for ids in rows)),
        "taken": taken.astype(int).tolist(),
        "lost": [[compact(v) for v in row] for row in lost.tolist()] if lost.any() else None,
        "sent": of.kept is not None,
        "most": strongest(taken / cases),
    }
    return Picture(stored, gathered(rows, wide))


def strongest(shares: np.ndarray) -> float:
    """The share that has the full colour; a few cells may be above it, so that they do not make all others pale."""
    some = shares[shares > 0]
    return float(f"{np.quantile(some, 0.99):.2g}") if len(some) else 1.0


def compact(value: float) -> float | int:
    return int(value) if value.is_integer() else round(value, 2)


def gathered(rows: list[np.ndarray], wide: int) -> str:
    """What a cell stands for, where it is not one client in one round."""
    tall = max(len(ids) for ids in rows)
    parts = [f"up to {tall:,} clients" if tall > 1 else "", f"{wide:,} rounds" if wide > 1 else ""]
    what = " and ".join(part for part in parts if part)
    return f"A cell stands for {what}, so that the page stays small." if what else ""


def mean_of(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """The mean of what is known; nan where nothing is."""
    known = ~np.isnan(values)
    count = known.sum(axis)
    return np.where(count > 0, np.where(known, values, 0).sum(axis) / np.maximum(count, 1), np.nan)
