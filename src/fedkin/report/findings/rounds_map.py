"""The map of clients against rounds, as the page stores it: a cell says who was selected and whose update counted."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from fedkin.report.findings.participation import Participation

SIDE = 200  # clients, or rounds, of which each has a row, or a column, of its own; more are drawn together
BUDGET = 240_000  # cells that the maps of all methods may have


@dataclass(frozen=True)
class RoundsMap:
    """What the page's script reads, and a note on what was drawn together."""

    stored: dict[str, Any]
    note: str


def rounds_map(of: Participation, side: int = SIDE) -> RoundsMap:
    """The map with at most `side` rows and columns. A row is a client or a group of clients, a column is a round or
    some rounds. A cell has how many clients were selected, and how many of their updates did not count."""
    rows = of.groups(side)
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
        "rows": [of.group_name(ids) for ids in rows],
        "firsts": [escape(str(of.names[ids[0]])) for ids in rows],
        "sizes": [len(ids) for ids in rows],
        "columns": ends,
        "relevant": None if of.irrelevant is None else int(sum(not of.irrelevant[ids[0]] for ids in rows)),
        "taken": taken.astype(int).tolist(),
        "lost": [[compact(v) for v in row] for row in lost.tolist()] if lost.any() else None,
        "sent": of.kept is not None,
        "most": strongest(taken / cases),
    }
    return RoundsMap(stored, drawn_together(rows, wide))


def strongest(shares: np.ndarray) -> float:
    """The share that has the full colour. A few cells may be above it, so that they do not make all others pale."""
    some = shares[shares > 0]
    return float(f"{np.quantile(some, 0.99):.2g}") if len(some) else 1.0


def compact(value: float) -> float | int:
    return int(value) if value.is_integer() else round(value, 2)


def drawn_together(rows: list[np.ndarray], wide: int) -> str:
    """What a cell stands for, if it is more than one client in one round."""
    tall = max(len(ids) for ids in rows)
    parts = [f"up to {tall:,} clients" if tall > 1 else "", f"{wide:,} rounds" if wide > 1 else ""]
    what = " and ".join(part for part in parts if part)
    return f"A cell stands for {what}, so that the page stays small." if what else ""
