"""The weights of who learns from whom as the page stores them: as many rounds and components as fit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from fedkin.messages import Kin
from fedkin.report.findings.kin import Kinship, own_and_others

STEPS = 30  # rounds on a slider; more are hard to hit
PANELS = 4  # components side by side
BUDGET = 8_000_000  # bytes that the weights of all methods may take of a page
LIVE = 60_000  # and of a page that is sent again and again, beside the last round of each method
NOTHING = 1e-7  # weights below are written as zero
DECADES = 4  # of the colour scale, at most


@dataclass(frozen=True)
class StoredKin:
    """The weights of one run as the page has them, and a note on what was left out."""

    text: str  # JSON; empty if not even one round fits
    rounds: list[int]
    components: list[str]
    low: float  # ends of the colour scale
    high: float
    note: str


def evenly_spaced(items: Sequence[Any], count: int) -> list[Any]:
    """So many of the items, evenly spaced. The last is always among them, and so is the first if there are several."""
    if count >= len(items):
        return list(items)
    return [items[i] for i in np.linspace(0, len(items) - 1, count).round().astype(int)] if count > 1 else [items[-1]]


def rounded(value: float) -> float:
    """Three significant digits, which is more than an eye can tell; from 0.1 on four, so that 0.9998 is not 1."""
    return float(f"{value:.{4 if value >= 0.1 else 3}g}") if value >= NOTHING else 0


def round_json(kin: Kin, round: int, components: Iterable[str]) -> str:
    """One stored round as JSON; rows are clients, columns those they learn from."""
    weights = [[[rounded(v) for v in row] for row in kin.weights[name].tolist()] for name in components]
    about = {"round": round, "ids": kin.ids.tolist(), "sources": kin.sources.tolist(), "weights": weights}
    return json.dumps(about, allow_nan=False, separators=(",", ":"))


def rounds_that_fit(of: Kinship, components: list[str], budget: int, last: int) -> dict[int, str]:
    """As many rounds as fit into the budget, at most STEPS, evenly spaced. The last round is always among them. Alone
    it may take `last` bytes; if it does not fit into these either, the result is empty."""
    made = {of.rounds[-1]: round_json(of.stored[of.rounds[-1]], of.rounds[-1], components)}
    guess = int(1.5 * budget / len(made[of.rounds[-1]]))  # spares the writing of rounds that will not fit
    count = min(STEPS, len(of.rounds), guess)
    while count > 0:
        chosen = evenly_spaced(of.rounds, count)
        for r in chosen:
            made[r] = made[r] if r in made else round_json(of.stored[r], r, components)
        total = sum(len(made[r]) for r in chosen)
        if total <= budget:
            return {r: made[r] for r in chosen}
        count = min(count - 1, int(count * budget / total))
    newest = of.rounds[-1]
    return {newest: made[newest]} if len(made[newest]) <= last else {}


def stored_kin(of: Kinship, budget: int = BUDGET, last: int = 0) -> StoredKin:
    """The weights within a budget of bytes. Rounds are left out first, then components, then everything; the last round
    alone may take `last` bytes if that is more. Where not all weights were stored, nothing is drawn."""
    components = of.components
    if of.crowded:
        note = "So many clients are not drawn; the run's folder, in kin/, has the largest weights of each."
        return StoredKin("", [], components, *colour_scale(of, [], []), note)
    steps = rounds_that_fit(of, components, budget, last)
    if len(steps) < min(5, len(of.rounds)) and len(components) > PANELS:
        components = evenly_spaced(components, PANELS)
        steps = rounds_that_fit(of, components, budget, last)
    said = []
    if not steps:
        said.append("The weights are left out of this page, which would become too big; they lie in the run's folder.")
    elif len(steps) < len(of.rounds):
        said.append(f"{len(steps)} of the {len(of.rounds)} stored rounds are shown, to keep the page small.")
    if steps and len(components) < len(of.components):
        said.append(f"{len(components)} of {len(of.components)} {of.word}s are shown, for the same reason.")
    low, high = colour_scale(of, list(steps), components)
    text = as_json(of, components, steps, low, high) if steps else ""
    return StoredKin(text, list(steps), components, low, high, " ".join(said))


def as_json(of: Kinship, components: list[str], steps: dict[int, str], low: float, high: float) -> str:
    """What the page's script reads, as JSON."""
    about: dict[str, Any] = {
        "order": of.order,
        "names": [escape(str(name)) for name in of.clients["names"]],  # plotly.js reads HTML in texts
        "majority": None if of.majority is None else of.majority.tolist(),
        "classes": [escape(label) for label in of.run.labels],
        "components": [escape(of.title(name)) for name in components],
        "low": low,
        "high": high,
    }
    return f'{json.dumps(about, allow_nan=False)[:-1]}, "steps": [{",".join(steps.values())}]}}'


def colour_scale(of: Kinship, rounds: list[int], components: list[str]) -> tuple[float, float]:
    """The ends of the logarithmic colour scale. It ends at the largest weight on another client and begins one to four
    decades below, so that small weights show and weights that are nearly equal look equal."""
    positive = []
    for r in rounds:
        for name in components:
            others = own_and_others(of.stored[r], name)[1]
            positive.append(others[others >= NOTHING])
    every = np.concatenate([np.empty(0), *positive])
    if not len(every):
        return 1e-3, 1e-2
    high = float(every.max())
    low = float(np.quantile(every, 0.02))
    return float(f"{max(high / 10**DECADES, min(low, high / 10)):.2g}"), float(f"{high:.3g}")
