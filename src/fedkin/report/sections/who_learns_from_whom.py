"""Who learns from whom: the weights of every client's mixture, over the rounds."""

from __future__ import annotations

from html import escape

import numpy as np

from fedkin.report.charts.curves import trend
from fedkin.report.charts.style import OWN, VIRIDIS, Figure, gradient
from fedkin.report.findings import kin_stored
from fedkin.report.findings.kin import ORDERED, Kinship, kinship
from fedkin.report.findings.kin_meaning import sentences
from fedkin.report.findings.kin_stored import PANELS, StoredKin, evenly_spaced, stored_kin
from fedkin.report.html import Section, chart, chip, choice, note, styles, titled
from fedkin.report.study import Entry, Study
from fedkin.report.words import joined, unfinished

WHOLE = 100  # clients up to which all are drawn at first, if a quarter is selected, and not only those selected
TRENDS = {
    "self_weight": ("mean weight of a client's own model", True),
    "neighbours": ("others with a weight above 0.1 %", True),
    "threshold": ("similarity threshold", False),
    "dropped_weight": ("weight on clients that are not mixed", True),
}


def who_learns_from_whom(study: Study) -> Section | None:
    """A panel a method that gives every client a mixture of its own; None if there is none."""
    found = {name: kinship(entry) for name, entry in study.entries.items()}
    known = {name: one for name, one in found.items() if one}
    if not known:
        return None
    whole = kin_stored.BUDGET // len(known)
    budget, last = (kin_stored.LIVE // len(known), whole) if study.live else (whole, 0)
    panels = [panel(study, name, i, one, stored_kin(one, budget, last)) for i, (name, one) in enumerate(known.items())]
    text = "Each row is a client; its colours say how much of the model it is given comes from which other client. "
    text += "The scale is logarithmic, so that small weights show. What is a client's own, often most of it, is orange."
    html = titled("Who learns from whom", note(text), *(one.html for one in panels))
    figures = {id: figure for one in panels for id, figure in one.figures.items()}
    return Section(html, figures, {"kin": {id: text for one in panels for id, text in one.data["kin"].items()}})


def panel(study: Study, name: str, i: int, one: Kinship, stored: StoredKin) -> Section:
    """One method: the map with its slider, and the method's numbers over the rounds."""
    lines = trends(study, name, i)
    drawn = drawing(one, stored, f"kin-{i}") if stored.text else ""
    shape = "kin one" if drawn and len(stored.components) == 1 else "kin"
    html = (
        f"<article><h3>{chip(study, name)}</h3><p>{escape(spoken(one))}</p>"
        f'<div class="{shape}">{drawn}{lines.html}</div>'
        f"{note(remarks(study.entries[name], one, stored))}</article>"
    )
    return Section(html, lines.figures, {"kin": {f"kin-{i}": stored.text} if stored.text else {}})


def trends(study: Study, name: str, i: int) -> Section:
    """The numbers over the rounds that the method has."""
    colour, _ = styles(study)[name]
    figures: dict[str, Figure] = {}
    places = []
    for word, (title, from_zero) in TRENDS.items():
        if values := study.entries[name].numbers("collaborate", word):
            figures[f"{word}-{i}"] = trend(values, title, colour, from_zero)
            places.append(chart(f"{word}-{i}", f"{name}: {title}, over the rounds"))
    return Section(f'<div class="trio">{"".join(places)}</div>' if places else "", figures)


def spoken(one: Kinship) -> str:
    """What the weights mean, and in which rounds."""
    if one.crowded:
        most = max(len(kin.ids) for kin in one.stored.values())
        return f"Each of up to {most:,} clients in a round gets a mixture of its own."
    first, last = one.late[0], one.late[-1]
    when = f"round {last}" if first == last else f"rounds {first} to {last}"
    return f"{' '.join(sentences(one))} (Seed {one.run.seed}, {when}.)"


def drawing(one: Kinship, stored: StoredKin, place: str) -> str:
    """The maps with their slider and their legend."""
    n = one.n
    most = max(len(one.stored[r].ids) for r in stored.rounds)
    some = any(len(one.stored[r].ids) < n for r in stored.rounds)
    views = {"all": "all clients", "selected": "those selected"}
    if n > WHOLE or 4 * most < n:
        views = dict(reversed(views.items()))  # the first is shown first
    view = choice(f"{place}-view", "Show", views).replace('class="choice"', 'class="choice view"') if some else ""
    keys = f"<span>from another client</span>{ramp(stored.low, stored.high)}"
    keys += f'<span><i style="background:{gradient(OWN)}"></i>its own, 0 to 100 %</span>'
    keys += '<span><i class="nothing"></i>nothing</span>'
    keys += "<span><i></i>not selected in this round</span>" if some else ""
    maps = [component_map(one, stored, i) for i in range(min(PANELS, len(stored.components)))]
    return (
        f'<div id="{place}" data-view="{next(iter(views))}"><div class="steps">{slider(stored)}</div>{view}'
        f'<div class="panels">{"".join(maps)}</div><div class="keys">{keys}</div></div>'
    )


def ramp(low: float, high: float) -> str:
    """The colour scale of the weights. Its ends are marked, and the powers of ten that are not too close to them."""
    span = np.log10(high / low)
    places = {10.0**p: np.log10(10.0**p / low) / span for p in range(-9, 1)}
    ticks = {low: 0.0} | {tick: at for tick, at in places.items() if 0.24 < at < 0.82} | {high: 1.0}
    marks = "".join(
        f'<span style="left:{100 * at:.1f}%">{"≤ " if tick == low else ""}{100 * tick:.3g} %</span>'
        for tick, at in ticks.items()
    )
    return f'<div class="ramp"><i style="background:{gradient(VIRIDIS)}"></i><div>{marks}</div></div>'


def slider(stored: StoredKin) -> str:
    """A slider over the stored rounds, which stands on the last one at first."""
    last = len(stored.rounds) - 1
    moved = '<button type="button">Play</button>'
    moved += f'<input type="range" aria-label="stored round" min="0" max="{last}" value="{last}">'
    return f"{moved if last else ''}<output>round {stored.rounds[-1]}</output>"


def component_map(one: Kinship, stored: StoredKin, i: int) -> str:
    """The map of one component. If there are more components than maps, the reader can choose another one."""
    names = [one.title(component) for component in stored.components]
    at = evenly_spaced(range(len(names)), PANELS)[i]
    head = escape(names[at])
    if len(names) > PANELS:
        chosen = {at: " selected"}
        options = [f'<option value="{k}"{chosen.get(k, "")}>{escape(text)}</option>' for k, text in enumerate(names)]
        head = f'<select aria-label="{one.word}">{"".join(options)}</select>'
    body = '<small></small><div class="map"></div>'
    return f'<div class="panel" data-component="{at}"><h4>{head}</h4>{body}</div>'


def remarks(entry: Entry, one: Kinship, stored: StoredKin) -> str:
    """Of which seed the map is, how its clients are ordered, and what is missing."""
    by_class = "Clients are ordered so that those with like shares of classes are side by side."
    why = "since their classes were not written down" if one.labels is None else "since there are so many"
    by_number = f"Clients are ordered by number, {why}."
    return joined(
        [
            f"The map is of seed {one.run.seed}." if stored.text else "",
            unfinished(one.run),
            "The lines are means over seeds." if len(entry.done or entry.runs) > 1 else "",
            (by_number if one.labels is None or one.n > ORDERED else by_class) if stored.text else "",
            stored.note,
        ]
    )
