"""The figures of a preset's page: our numbers with their spread, the paper's beside them, and our curves."""

from __future__ import annotations

from html import escape
from typing import Any

from fedkin.report.charts.style import ALONE, DASHES, PALETTE, Figure, faint, layout, legend_above
from fedkin.reproduce.outcome import Outcome
from fedkin.reproduce.tables import by_place, mean, spread

PAPER = "#d55e00"
OURS = "#0072b2"


def figures(outcome: Outcome) -> dict[str, tuple[str, Figure]]:
    """The figures of a preset by their ids, each with its title."""
    found: dict[str, tuple[str, Figure]] = {}
    for i, panel in enumerate(dict.fromkeys(curve["panel"] for curve in outcome["curves"])):
        curves = [curve for curve in outcome["curves"] if curve["panel"] == panel and curve["rounds"]]
        if curves:
            words = "; ".join(dict.fromkeys(curve["is"].rpartition(", ")[0] or curve["is"] for curve in curves))
            found[f"curves-{i}"] = (f"{panel}, by round: {words}", over_rounds(curves))
    if outcome["axis"]:
        if any(cell["values"] for cell in outcome["cells"]):
            found["steps"] = (f"By {outcome['axis']}", over_columns(outcome))
        return found
    for i, column in enumerate(outcome["columns"]):
        cells = [cell for cell in outcome["cells"] if cell["column"] == column and mean(cell) is not None]
        if cells:
            found[f"dots-{i}"] = (column, dots(cells))
    return found


def dots(cells: list[Outcome]) -> Figure:
    """One column: a line a row, our mean with its standard deviation, and the paper's number."""
    rows = [cell["row"] for cell in cells][::-1]
    published = [cell for cell in cells if "published" in cell]
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "ours ± standard deviation",
            "x": [mean(cell) for cell in cells],
            "y": [escape(cell["row"]) for cell in cells],
            "error_x": {"type": "data", "array": [spread(cell) or 0 for cell in cells], "color": OURS},
            "marker": {"size": 9, "color": OURS},
            "hovertemplate": "%{y}: %{x:.2f}<extra>ours</extra>",
        }
    ]
    if published:
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "paper",
                "x": [cell["published"] for cell in published],
                "y": [escape(cell["row"]) for cell in published],
                "marker": {"size": 11, "color": PAPER, "symbol": "diamond-open", "line": {"width": 2}},
                "hovertemplate": "%{y}: %{x:.2f}<extra>paper</extra>",
            }
        )
    y = {"categoryorder": "array", "categoryarray": [escape(row) for row in rows]}
    return {"data": data, "layout": layout(max(180, 110 + 26 * len(rows)), {"title": {"text": ""}}, y) | legend_above()}


def over_columns(outcome: Outcome) -> Figure:
    """A line a row over the columns, which are steps of one number."""
    cells = by_place(outcome)
    data: list[dict[str, Any]] = []
    for i, row in enumerate(outcome["rows"]):
        colour = ALONE if row.startswith("Local") else PALETTE[i % len(PALETTE)]
        there = [
            column for column in outcome["columns"] if (row, column) in cells and mean(cells[row, column]) is not None
        ]
        line = {"color": colour, "width": 2.5, "dash": DASHES[i // len(PALETTE) % len(DASHES)]}
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": escape(row),
                "x": there,
                "y": [mean(cells[row, column]) for column in there],
                "error_y": {"type": "data", "array": [spread(cells[row, c]) or 0 for c in there], "color": colour},
                "line": line,
            }
        )
        printed = [column for column in there if "published" in cells[row, column]]
        if printed:
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": f"{escape(row)}, paper",
                    "x": printed,
                    "y": [cells[row, column]["published"] for column in printed],
                    "marker": {"size": 11, "color": colour, "symbol": "diamond-open", "line": {"width": 2}},
                }
            )
    return {"data": data, "layout": layout(440, {"type": "category"}, {}) | legend_above()}


def over_rounds(curves: list[Outcome]) -> Figure:
    """A line a curve: the mean over repetitions, and a band from the lowest to the highest."""
    data: list[dict[str, Any]] = []
    for i, curve in enumerate(curves):
        colour = ALONE if curve["name"].startswith("Local") else PALETTE[i % len(PALETTE)]
        common = {"x": curve["rounds"], "mode": "lines", "legendgroup": curve["name"]}
        if curve["low"] != curve["high"]:
            edge = {"line": {"width": 0, "color": colour}, "hoverinfo": "skip", "showlegend": False}
            data.append(common | edge | {"y": curve["low"]})
            data.append(common | edge | {"y": curve["high"], "fill": "tonexty", "fillcolor": faint(colour)})
        line = {"color": colour, "width": 2.5, "dash": DASHES[i // len(PALETTE) % len(DASHES)]}
        data.append(common | {"y": curve["mean"], "name": escape(curve["name"]), "line": line})
    x = {"title": {"text": "round"}, "rangemode": "tozero"}
    return {"data": data, "layout": layout(440, x, {}) | {"hovermode": "x unified"} | legend_above()}
