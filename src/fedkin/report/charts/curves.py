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
    times, number = (100, ".2f} %") if metric.percent else (1, ".3f}")
    for name, label, key, values in series:
        scaled = {r: [times * value for value in several] for r, several in values.items()}
        for trace in method_line(name, label, scaled, style[name], number):
            data.append(trace | {"meta": key, "visible": key == shown})
    x = {"title": {"text": "round"}, "rangemode": "tozero"}
    y = {"title": {"text": f"{metric.label}, %" if metric.percent else metric.label}}
    return {"data": data, "layout": layout(440, x, y) | {"hovermode": "x unified"} | legend_above()}


def number_curves(
    series: list[tuple[str, str, Values]], style: dict[str, Style], title: str, middle: bool = False
) -> Figure:
    """A line a method as above, of a number that is no metric. An item of `series` has the method, its label and the
    values by round; a round without values is a gap in the line. With `middle` the axis shows the middle nine tenths of
    the values."""
    data = [t for name, label, values in series for t in method_line(name, label, values, style[name], ".4~g}")]
    x = {"title": {"text": "round"}, "rangemode": "tozero"}
    y: dict[str, Any] = {"title": {"text": title}}
    known = np.array([value for _, _, values in series for several in values.values() for value in several])
    if middle:
        y |= {"range": axis_range(np.quantile(known, (0.05, 0.95)), False)}
    return {"data": data, "layout": layout(340, x, y) | {"hovermode": "x unified"} | legend_above()}


def method_line(name: str, label: str, values: Values, style: Style, number: str) -> list[dict[str, Any]]:
    """The traces of one method: a band where a round has several values, and the line of their means. `number` is how a
    value is written, the end of a template: '.2f} %'."""
    data: list[dict[str, Any]] = []
    colour, dash = style
    rounds = sorted(values)
    common = {"x": rounds, "legendgroup": name, "mode": "lines"}
    lows, highs, means = ([float(f(values[r])) if values[r] else None for r in rounds] for f in (min, max, np.mean))
    for some in unbroken(values) if any(len(several) > 1 for several in values.values()) else ():
        edge = {"x": some, "line": {"width": 0, "color": colour}, "hoverinfo": "skip", "showlegend": False}
        data.append(common | edge | {"y": [min(values[r]) for r in some]})
        upper = {"y": [max(values[r]) for r in some], "fill": "tonexty", "fillcolor": faint(colour)}
        data.append(common | edge | upper)
    ends = number.partition("}")[0]
    line = {
        "y": means,
        "name": escape(label),
        "line": {"color": colour, "dash": dash, "width": 2.5},
        "customdata": [[low, high] for low, high in zip(lows, highs, strict=True)],
        "hovertemplate": f"%{{y:{number} (seeds: %{{customdata[0]:{ends}}} to %{{customdata[1]:{ends}}})",
    }
    few = {"mode": "lines+markers", "marker": {"size": 6, "color": colour}} if len(rounds) <= 15 else {}
    return [*data, common | line | few]


def unbroken(values: Values) -> list[list[int]]:
    """The rounds that have values, in pieces between those that have none."""
    found: list[list[int]] = [[]]
    for r in sorted(values):
        if values[r]:
            found[-1].append(r)
        elif found[-1]:
            found.append([])
    return [piece for piece in found if piece]


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
