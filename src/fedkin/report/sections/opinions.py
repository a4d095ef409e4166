"""What the selection thinks of the clients: the scores it gives them, over the rounds."""

from __future__ import annotations

from html import escape

import numpy as np

from fedkin.report.charts.curves import trend
from fedkin.report.charts.scores import EACH, scores
from fedkin.report.charts.style import Figure
from fedkin.report.findings.participation import mean_of
from fedkin.report.findings.scores import Scores, scores_of
from fedkin.report.formats import significant
from fedkin.report.html import Section, chart, chip, note, styles, titled
from fedkin.report.study import Study
from fedkin.report.words import joined, unfinished
from fedkin.runs.run import Run

TRENDS = {"entropy": "entropy, 1 if all scores are equal", "max_min": "largest score over smallest"}


def opinions(study: Study) -> Section | None:
    """A panel a method whose selection gives scores; None if there is none."""
    every = {name: (run, found) for name, (run, one) in study.drawn.items() if (found := scores_of(run, one))}
    if not every:
        return None
    meanings = {found.scale.meaning for _, found in every.values()}
    common = meanings.pop() if len(meanings) == 1 else ""  # said once; otherwise each method says its own
    panels = [panel(study, name, i, *pair, bool(common)) for i, (name, pair) in enumerate(every.items())]
    html = titled("What the selection thinks of the clients", note(common), *(one.html for one in panels))
    return Section(html, {id: figure for one in panels for id, figure in one.figures.items()})


def panel(study: Study, name: str, i: int, run: Run, found: Scores, explained: bool) -> Section:
    """One method; it says what its scores mean unless the section has `explained` them."""
    colour, _ = styles(study)[name]
    figures: dict[str, Figure] = {f"scores-{i}": scores(found, colour)}
    places = []
    for word, title in TRENDS.items():
        if values := study.entries[name].numbers("select", word):
            figures[f"{word}-{i}"] = trend(values, title, colour, from_zero=False)
            places.append(chart(f"{word}-{i}", f"{name}: {title}, over the rounds"))
    said = spoken(found) if explained else f"{found.scale.meaning} {spoken(found)}"
    html = (
        f"<article><h3>{chip(study, name)}</h3><p>{escape(said)}</p>"
        f"{chart(f'scores-{i}', f'{name}: {found.scale.title}, over the rounds')}"
        + (f'<div class="pair">{"".join(places)}</div>' if places else "")
        + f"{note(remarks(run, found))}</article>"
    )
    return Section(html, figures)


def spoken(found: Scores) -> str:
    """Who has the highest and the lowest score at the end, and the mean scores of irrelevant clients and the others."""
    last, one = found.values[-1], found.clients
    high, low = int(np.nanargmax(last)), int(np.nanargmin(last))
    text = f"In round {found.rounds[-1]:,} {one.called(high)} has the highest score, {significant(last[high])}, and "
    text += f"{one.called(low)} the lowest, {significant(last[low])}."
    if one.irrelevant is not None:
        apart = [significant(float(mean_of(last[mask]))) for mask in (one.irrelevant, ~one.irrelevant)]
        text += f" Irrelevant clients have {apart[0]} on average, the others {apart[1]}."
    return text


def remarks(run: Run, found: Scores) -> str:
    several = len(found.rounds)
    said = [f"Seed {run.seed}; scores of {several} round{'s' if several > 1 else ''} were kept.", unfinished(run)]
    if found.clients.n > EACH:
        said.append("Thick: the median; band: the middle 80 % of the clients; dotted: the least and the largest.")
    return joined([*said, "The scale is logarithmic." if found.wide else ""])
