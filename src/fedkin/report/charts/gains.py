"""Every client's gain over training alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedkin.report.charts.style import BETTER, NAMED, SAME, WORSE, Figure, decades, layout, named_ticks


def sorted_gains(gains: np.ndarray, texts: list[str], names: list[str], span: tuple[float, float], unit: str) -> Figure:
    """Every client's gain, sorted. Colours tell gains above zero from those below."""
    order = np.argsort(gains, kind="stable")
    bar = {
        "type": "bar",
        "x": list(range(1, len(order) + 1)),
        "y": gains[order].tolist(),
        "marker": {"color": [side_colour(gains[i]) for i in order], "line": {"width": 0}},
        "hovertext": [texts[i] for i in order],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "showlegend": False,
    }
    x: dict[str, Any] = {"title": {"text": "clients, by gain"}, "showgrid": False}
    if len(order) <= NAMED:
        x |= named_ticks(range(1, len(order) + 1), [names[i] for i in order]) | {"title": {"text": ""}}
    gap = 0.25 if len(order) <= 150 else 0.0
    return {"data": [bar], "layout": layout(320, x, gain_axis(span, unit)) | {"bargap": gap}}


def gains_by_size(
    gains: np.ndarray, sizes: np.ndarray, texts: list[str], span: tuple[float, float], unit: str
) -> Figure:
    """Every client's gain against its number of training samples."""
    dots = {
        "type": "scatter",
        "mode": "markers",
        "x": sizes.tolist(),
        "y": gains.tolist(),
        "marker": {
            "color": [side_colour(gain) for gain in gains],
            "size": 8 if len(gains) <= 150 else 6,
            "opacity": 0.75,
        },
        "hovertext": texts,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "showlegend": False,
    }
    wide = sizes.min() > 0 and sizes.max() >= 8 * sizes.min()
    x: dict[str, Any] = {"title": {"text": "training samples" + (" (logarithmic)" if wide else "")}}
    if wide:
        ticks = decades(float(sizes.min()), float(sizes.max()))
        x |= {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,}" for tick in ticks]}
    return {"data": [dots], "layout": layout(320, x, gain_axis(span, unit))}


def common_span(gains: list[np.ndarray]) -> tuple[float, float]:
    """One range for the gains of all methods, so that panels can be compared by eye. Zero is always in it."""
    low, high = min(0.0, *(float(g.min()) for g in gains)), max(0.0, *(float(g.max()) for g in gains))
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


def gain_axis(span: tuple[float, float], unit: str) -> dict[str, Any]:
    return {"title": {"text": f"gain over alone, {unit}"}, "range": list(span), "zeroline": True, "zerolinewidth": 2}


def side_colour(gain: float) -> str:
    return BETTER if gain > 0 else WORSE if gain < 0 else SAME
