"""Numbers over the rounds: a metric of all methods, and single numbers of one method."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from fedkin.metrics import Metric
from fedkin.report.charts.style import Figure, Style, faint, layout, legend_above
from fedkin.report.study import Values


def metric_curves(
    series: list[tuple[str, str, str, Values]], style: dict[str, Style], shown: str, metric: Metric
) -> Figure:
    """A line a method: the mean over seeds, and a band from the worst seed to the best. An item of `series` has the
    method, its label, the kind and average ('post/macro') and the values by round. Lines of `shown` are visible at
    first."""
    data: list[dict[str, Any]] = []
    times, unit = (100, " %") if metric.percent else (1, "")
    digits = ".2f" if metric.percent else ".3f"
    hover = f"%{{y:{digits}}}{unit} (seeds: %{{customdata[0]:{digits}}} to %{{customdata[1]:{digits}}})"
    for name, label, key, values in series:
        colour, dash = style[name]
        rounds = sorted(values)
        common = {"x": rounds, "meta": key, "visible": key == shown, "legendgroup": name, "mode": "lines"}
        lows, highs = ([times * f(values[r]) for r in rounds] for f in (min, max))
        if any(len(values[r]) > 1 for r in rounds):
            edge = {"line": {"width": 0, "color": colour}, "hoverinfo": "skip", "showlegend": False}
            data.append(common | edge | {"y": lows})
            data.append(common | edge | {"y": highs, "fill": "tonexty", "fillcolor": faint(colour)})
        line = {
            "y": [times * float(np.mean(values[r])) for r in rounds],
            "name": escape(label),
            "line": {"color": colour, "dash": dash, "width": 2.5},
            "customdata": [[low, high] for low, high in zip(lows, highs, strict=True)],
            "hovertemplate": hover,
        }
        few = {"mode": "lines+markers", "marker": {"size": 6, "color": colour}} if len(rounds) <= 15 else {}
        data.append(common | line | few)
    x = {"title": {"text": "round"}, "rangemode": "tozero"}
    y = {"title": {"text": f"{metric.label}, %" if metric.percent else metric.label}}
    return {"data": data, "layout": layout(440, x, y) | {"hovermode": "x unified"} | legend_above()}


def trend(values: Values, title: str, colour: str, from_zero: bool) -> Figure:
    """One number over the rounds: the mean over seeds, and a faint line a seed where there are several."""
    rounds = sorted(values)
    seeds = np.array([values[r] for r in rounds]).T  # (seeds, rounds)
    common = {"type": "scatter", "x": rounds, "showlegend": False, "mode": "lines"}
    thin = {"line": {"color": faint(colour), "width": 1}, "hoverinfo": "skip"}
    data = [common | thin | {"y": row.tolist()} for row in (seeds if len(seeds) > 1 else [])]
    line = {"y": seeds.mean(0).tolist(), "line": {"color": colour, "width": 2.5}}
    few = {"mode": "lines+markers", "marker": {"size": 5, "color": colour}} if len(rounds) <= 15 else {}
    data.append(common | line | few | {"hovertemplate": "round %{x}: %{y:.4~g}<extra></extra>"})
    above = {"title": {"text": title, "font": {"size": 14}, "x": 0, "xref": "paper", "xanchor": "left"}}
    above |= {"margin": {"l": 44, "r": 12, "t": 34, "b": 40}}
    y = {"range": axis_range(seeds, from_zero), "nticks": 5}
    x = {"title": {"text": "round"}, "rangemode": "tozero", "nticks": 6}
    return {"data": data, "layout": layout(190, x, y) | above}


def axis_range(values: np.ndarray, from_zero: bool) -> list[float]:
    """The range of an axis. Amounts begin at zero and reach at least to one. Other numbers get a range around them,
    because a small change far from zero could not be seen otherwise."""
    low, high = float(values.min()), float(values.max())
    if from_zero:
        return [0.0, max(1.1 * high, 1.0)]
    room = max(0.15 * (high - low), 0.001 * abs(high), 1e-6)
    return [low - room, high + room]
