"""The scores that a selection gives to clients, over the rounds."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from fedkin.report.charts.style import COUNTED, LOST, Figure, decades, faint, layout, legend_above
from fedkin.report.findings.scores import Scores

EACH = 50  # clients up to which each has a line; of more, bands are drawn
ENDS = 2  # clients with the highest scores at the end that are drawn by name, and as many with the lowest
NONE = np.full(5, np.nan)


def scores(found: Scores, colour: str) -> Figure:
    """The scores over the rounds: a line a client, or bands if there are many clients. Relevant and irrelevant clients
    have two colours where it is known who is irrelevant. Of many clients, those that end highest and lowest are drawn
    by name."""
    irrelevant = found.clients.irrelevant
    groups = [("all clients", np.arange(found.clients.n), colour)]
    if irrelevant is not None:
        groups = [("relevant clients", np.flatnonzero(~irrelevant), COUNTED)]
        groups += [("irrelevant clients", np.flatnonzero(irrelevant), LOST)]
    draw = lines if found.clients.n <= EACH else bands
    data = [trace for title, ids, tone in groups if len(ids) for trace in draw(found, title, ids, tone)]
    data += extremes(found)
    x = {"title": {"text": "round"}, "rangemode": "tozero"}
    y: dict[str, Any] = {"title": {"text": found.scale.title}, "zeroline": False}
    if found.wide:
        ticks = decades(float(np.nanmin(found.values)), float(np.nanmax(found.values)))
        y |= {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}
    return {"data": data, "layout": layout(340, x, y) | legend_above()}


def path(found: Scores, values: np.ndarray) -> dict[str, Any]:
    """A line over the stored rounds. If there are few rounds, each has a marker."""
    y = [float(f"{v:.4g}") if np.isfinite(v) else None for v in values]
    few = "lines+markers" if len(found.rounds) <= 15 else "lines"
    return {"type": "scatter", "mode": few, "marker": {"size": 5}, "x": found.rounds, "y": y}


def lines(found: Scores, title: str, ids: np.ndarray, tone: str) -> list[dict[str, Any]]:
    """A thin line a client."""
    strength = 0.4 if len(ids) > 10 else 0.7
    line = {"color": faint(tone, strength), "width": 1.3}
    common = {"mode": "lines", "line": line, "name": title, "legendgroup": title}
    return [
        path(found, found.values[:, k]) | common | {"showlegend": i == 0, "hovertemplate": hover(found, int(k))}
        for i, k in enumerate(ids)
    ]


def hover(found: Scores, client: int) -> str:
    """What pointing at a client's line says."""
    return f"{escape(found.clients.called(client))}, round %{{x}}: %{{y:.3~g}}<extra></extra>"


def bands(found: Scores, title: str, ids: np.ndarray, tone: str) -> list[dict[str, Any]]:
    """Dotted lines for the smallest and the largest score, a band for the middle 80 %, a thick line for the median."""
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
        path(found, low) | quiet | {"line": none},
        path(found, high) | quiet | {"line": none, "fill": "tonexty", "fillcolor": faint(tone, 0.25)},
        path(found, least) | quiet | {"line": thin},
        path(found, most) | quiet | {"line": thin},
        path(found, middle) | median | {"hovertemplate": said},
    ]


def extremes(found: Scores) -> list[dict[str, Any]]:
    """The clients that end highest and lowest, by name; none if there are few clients."""
    order = np.argsort(np.nan_to_num(found.values[-1], nan=-np.inf), kind="stable")
    order = order[~np.isnan(found.values[-1][order])]
    if len(order) <= 4 * ENDS:
        return []
    chosen = [*order[::-1][:ENDS], *order[:ENDS][::-1]]
    tones = ("#d1495b", "#cc79a7", "#4a90d9", "#8b6fd6")
    return [
        path(found, found.values[:, k])
        | {"line": {"color": tone, "width": 2}, "name": escape(found.clients.called(int(k)))}
        | {"hovertemplate": hover(found, int(k))}
        for k, tone in zip(chosen, tones, strict=True)
    ]
