"""Who was selected."""

from __future__ import annotations

import numpy as np

from fedkin.compare import LOCAL
from fedkin.results import charts
from fedkin.results.pieces import note, section
from fedkin.results.study import Entry, Study
from fedkin.results.words import listed


def selected(study: Study, figures: dict[str, charts.Figure]) -> str:
    """Who took part how often; of methods that select everybody a sentence is enough."""
    n = len(study.clients["names"])
    found = {name: selection(entry, n) for name, entry in study.entries.items() if entry.done}
    everybody = [name for name, share in found.items() if (share == 1).all()]
    some = {name: share for name, share in found.items() if name not in everybody}
    said = f"{listed(everybody, 'and')}: every client in every round." if everybody else ""
    if not some:
        return section("Who was selected", note(said)) if said else ""
    names = [str(name) for name in study.clients["names"]]
    figures["selected"] = charts.selections(some, names, charts.styles(list(study.entries), LOCAL))
    text = "Share of rounds in which each client was selected, mean over seeds. Chance alone makes the line fall a "
    text += "little; a steep fall means that some clients are preferred. "
    return section("Who was selected", '<div id="selected" class="chart"></div>', note(text + said))


def selection(entry: Entry, n: int) -> np.ndarray:
    """The share of rounds in which each client was selected, mean over finished seeds."""  # (n,)
    counts = [np.bincount(np.concatenate(t.run.selected()), minlength=n) / len(t.lines) for t in entry.done]
    share: np.ndarray = np.mean(counts, axis=0)
    return share
