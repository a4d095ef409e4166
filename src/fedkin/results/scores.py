"""What the selection thinks of every client, over the rounds: AdaFL's attention, Active FL's values, Shapley values."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from fedkin.compare import LOCAL
from fedkin.results import charts
from fedkin.results.attendance import Attendance, mean_of
from fedkin.results.pieces import chart, chip, note, section
from fedkin.results.study import Study
from fedkin.results.words import progress

EACH = 50  # clients up to which each has a line; of more, bands are drawn
NAMED = 2  # of the highest at the end, and of the lowest
NONE = np.full(5, np.nan)
WIDE = 20  # the largest score over the smallest, from which the scale is logarithmic
TRENDS = {
    "entropy": ("entropy, 1 if all scores are equal", False),
    "max_min": ("largest score over smallest", False),
}


@dataclass(frozen=True)
class Scale:
    """What a selection's score is called, and the unit it is shown in."""

    title: str
    meaning: str
    unit: float = 1.0


def scale(one: Attendance) -> Scale:
    kind = str(one.trial.run.experiment["method"]["select"]["is"])
    if kind == "Attention":
        text = "A client's score is its chance of being drawn; 1 is an even share, that of a draw without preference."
        return Scale("chance, even share = 1", text, 1 / one.n)
    if kind == "Active":
        text = "A client's value is its loss times the root of its number of samples; high values are drawn more often."
        return Scale("value: loss × √samples", text)
    if kind == "Shapley":
        text = "A client's value is what it added to the validation accuracy; high values are drawn more often."
        return Scale("Shapley value", text)
    return Scale("score", "Larger scores are drawn more often.")


@dataclass(frozen=True)
class Scores:
    one: Attendance
    scale: Scale
    rounds: list[int]
    values: np.ndarray  # (rounds, n), nan where nothing is known


def scored(one: Attendance) -> Scores | None:
    """None of selections that have no opinion."""
    found = one.trial.run.marks("select", "score")
    unit = scale(one)
    known = {r: np.where(np.isfinite(found[r]), found[r] / unit.unit, np.nan) for r in sorted(found)}
    known = {r: values for r, values in known.items() if not np.isnan(values).all()}
    return Scores(one, unit, list(known), np.stack(list(known.values()))) if known else None


def opinions(study: Study, known: dict[str, Attendance], figures: dict[str, charts.Figure]) -> str:
    """A panel a method that has scores; nothing where none has."""
    every = {name: found for name, one in known.items() if (found := scored(one))}
    meanings = {found.scale.meaning for found in every.values()}
    common = meanings.pop() if len(meanings) == 1 else ""  # said once; otherwise each method says its own
    articles = []
    for i, (name, found) in enumerate(every.items()):
        colour, _ = charts.styles(list(study.entries), LOCAL)[name]
        figures[f"scores-{i}"] = drawn(found, colour)
        places = []
        for word, (title, from_zero) in TRENDS.items():
            if values := study.entries[name].numbers("select", word):
                figures[f"{word}-{i}"] = charts.trend(values, title, colour, from_zero)
                places.append(chart(f"{word}-{i}", f"{name}: {title}, over the rounds"))
        said = spoken(found) if common else f"{found.scale.meaning} {spoken(found)}"
        articles.append(
            f"<article><h3>{chip(study, name)}</h3><p>{escape(said)}</p>"
            f"{chart(f'scores-{i}', f'{name}: {found.scale.title}, over the rounds')}"
            + (f'<div class="pair">{"".join(places)}</div>' if places else "")
            + f"{note(remarks(found))}</article>"
        )
    return section("What the selection thinks of the clients", note(common), *articles) if articles else ""


def spoken(found: Scores) -> str:
    """Who is ahead at the end, and how the irrelevant ones fare where they are known."""
    last, one = found.values[-1], found.one
    high, low = int(np.nanargmax(last)), int(np.nanargmin(last))
    text = f"In round {found.rounds[-1]:,} {one.called(high)} has the highest score, {short(last[high])}, and "
    text += f"{one.called(low)} the lowest, {short(last[low])}."
    if one.irrelevant is not None:
        apart = [short(float(mean_of(last[mask]))) for mask in (one.irrelevant, ~one.irrelevant)]
        text += f" Irrelevant clients have {apart[0]} on average, the others {apart[1]}."
    return text


def short(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


def remarks(found: Scores) -> str:
    one, several = found.one, len(found.rounds)
    said = [f"Seed {one.trial.seed}; scores of {several} round{'s' if several > 1 else ''} were kept."]
    said += [f"That seed is unfinished ({progress(one.trial)})." if one.trial.summary is None else ""]
    if one.n > EACH:
        said.append("Thick: the median; band: the middle 80 % of the clients; dotted: the least and the largest.")
    said += ["The scale is logarithmic." if wide(found) else ""]
    return " ".join(text for text in said if text)


def wide(found: Scores) -> bool:
    low, high = float(np.nanmin(found.values)), float(np.nanmax(found.values))
    return low > 0 and high >= WIDE * low


def drawn(found: Scores, colour: str) -> charts.Figure:
    """Lines of few clients or bands of many, relevant and irrelevant ones in two colours where the truth is known; and
    those clients by name that are highest and lowest in the end."""
    irrelevant = found.one.irrelevant
    groups = [("all clients", np.arange(found.one.n), colour)]
    if irrelevant is not None:
        groups = [("relevant clients", np.flatnonzero(~irrelevant), charts.COUNTED)]
        groups += [("irrelevant clients", np.flatnonzero(irrelevant), charts.LOST)]
    draw = lines if found.one.n <= EACH else bands
    data = [trace for title, ids, tone in groups if len(ids) for trace in draw(found, title, ids, tone)]
    data += extremes(found)
    x = {"title": {"text": "round"}, "rangemode": "tozero"}
    y: dict[str, Any] = {"title": {"text": found.scale.title}, "zeroline": False}
    if wide(found):
        ticks = charts.decades(float(np.nanmin(found.values)), float(np.nanmax(found.values)))
        y |= {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}
    top = {"margin": {"l": 56, "r": 12, "t": 40, "b": 48}}
    return {"data": data, "layout": charts.layout(340, x, y, legend=charts.legend(), showlegend=True) | top}


def path(found: Scores, values: np.ndarray, **rest: Any) -> dict[str, Any]:
    """A line over the kept rounds; with few of them their places are marked."""
    y = [float(f"{v:.4g}") if np.isfinite(v) else None for v in values]
    few = "lines+markers" if len(found.rounds) <= 15 else "lines"
    return {"type": "scatter", "mode": few, "marker": {"size": 5}, "x": found.rounds, "y": y} | rest


def lines(found: Scores, title: str, ids: np.ndarray, tone: str) -> list[dict[str, Any]]:
    strength = 0.4 if len(ids) > 10 else 0.7
    line = {"color": charts.faint(tone, strength), "width": 1.3}
    return [
        path(found, found.values[:, k], mode="lines", line=line, name=title, legendgroup=title, showlegend=i == 0)
        | {"hovertemplate": f"{escape(found.one.called(int(k)))}, round %{{x}}: %{{y:.3~g}}<extra></extra>"}
        for i, k in enumerate(ids)
    ]


def bands(found: Scores, title: str, ids: np.ndarray, tone: str) -> list[dict[str, Any]]:
    """Thin lines for the least and the largest, a band for the middle 80 %, a thick line for the median."""
    known = found.values[:, ids]
    cuts = [
        np.quantile(row[~np.isnan(row)], [0, 0.1, 0.5, 0.9, 1]) if not np.isnan(row).all() else NONE for row in known
    ]
    least, low, middle, high, most = np.array(cuts).T
    common = {"mode": "lines", "legendgroup": title}
    quiet = common | {"hoverinfo": "skip", "showlegend": False}
    thin, none = {"width": 1, "color": tone, "dash": "dot"}, {"width": 0, "color": tone}
    bounds = [[f"{v:.3g}" for v in row] for row in np.stack([least, low, high, most], axis=1)]
    said = "round %{x}: median %{y:.3~g}, 80 % from %{customdata[1]} to %{customdata[2]}, "
    said += f"all from %{{customdata[0]}} to %{{customdata[3]}}<extra>{title}</extra>"
    median = common | {"line": {"color": tone, "width": 2.5}, "name": title, "customdata": bounds}
    return [
        path(found, low, **quiet, line=none),
        path(found, high, **quiet, line=none, fill="tonexty", fillcolor=charts.faint(tone, 0.25)),
        path(found, least, **quiet, line=thin),
        path(found, most, **quiet, line=thin),
        path(found, middle, **median, hovertemplate=said),
    ]


def extremes(found: Scores) -> list[dict[str, Any]]:
    """The clients that are highest and lowest in the end, of many by name."""
    order = np.argsort(np.nan_to_num(found.values[-1], nan=-np.inf), kind="stable")
    order = order[~np.isnan(found.values[-1][order])]
    if len(order) <= 4 * NAMED:
        return []
    chosen = [*order[::-1][:NAMED], *order[:NAMED][::-1]]
    tones = ("#d1495b", "#cc79a7", "#4a90d9", "#8b6fd6")
    return [
        path(found, found.values[:, k], line={"color": tone, "width": 2}, name=escape(found.one.called(int(k))))
        | {"hovertemplate": f"{escape(found.one.called(int(k)))}, round %{{x}}: %{{y:.3~g}}<extra></extra>"}
        for k, tone in zip(chosen, tones, strict=True)
    ]
