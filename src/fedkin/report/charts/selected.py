"""How often clients were selected."""

from __future__ import annotations

from html import escape

import numpy as np

from fedkin.report.charts.style import Figure, Style, drawn_places, layout, legend_above


def selected_shares(shares: dict[str, np.ndarray], names: list[str], style: dict[str, Style]) -> Figure:
    """The share of rounds in which each client was selected, sorted: a line a method."""
    data = []
    for method, share in shares.items():
        order = np.argsort(-share, kind="stable")
        at = drawn_places(len(order))
        tone, dash = style[method]
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": escape(method),
                "x": [i + 1 for i in at],
                "y": (100 * share[order[at]]).round(6).tolist(),
                "line": {"color": tone, "dash": dash, "shape": "hvh", "width": 2.5},
                "hovertext": [escape(names[order[i]]) for i in at],
                "hovertemplate": "client %{hovertext}: %{y:.1f} % of rounds",
            }
        )
    x = {"title": {"text": "clients, by how often they were selected"}, "showgrid": False}
    y = {"title": {"text": "% of rounds"}, "rangemode": "tozero"}
    return {"data": data, "layout": layout(300, x, y) | legend_above()}
