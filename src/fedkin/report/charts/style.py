"""Colours, dashes and the layout that all figures share."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

Figure = dict[str, Any]
Style = tuple[str, str]  # colour and dash of a line

# Okabe and Ito's colours, told apart by colour-blind readers; Local is grey wherever it appears.
PALETTE = ("#0072b2", "#d55e00", "#56b4e9", "#e69f00", "#cc79a7", "#009e73")
DASHES = ("solid", "dash", "dot", "dashdot")  # so that a line under another still shows in its gaps
ALONE = "#8a8f98"
BETTER, SAME, WORSE = "#2f9e6e", "#a9aeb6", "#9060b0"
# viridis, even to the eye and to colour-blind readers, for what others give; what is a client's own has another hue.
VIRIDIS = ("#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6dcd59", "#b4de2c", "#fde725")
OWN = ("#fbd9c0", "#ec7a35", "#b33a00")
SCALES = {"WEIGHTS": VIRIDIS, "OWN": OWN}
# An update that counted and one that did not; also a relevant client and an irrelevant one.
COUNTED, LOST = "#1d8a8a", "#e08a1e"
NAMED = 30  # so many clients' names fit under the bars
DOTS = 1000  # of a line or a cloud; of more clients these are drawn, evenly spaced


def styles(names: list[str], local: str) -> dict[str, Style]:
    """A colour and a dash for each method, the same in every figure."""
    others = [name for name in names if name != local]
    cycle = [(PALETTE[i % len(PALETTE)], DASHES[i % len(DASHES)]) for i in range(len(others))]
    return dict(zip(others, cycle, strict=True)) | {local: (ALONE, "solid")}


def layout(height: int, x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    """What all figures have in common. The page's script adds the colours of text and lines."""
    return {
        "height": height,
        "margin": {"l": 56, "r": 12, "t": 28, "b": 48},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {"align": "left"},
        "xaxis": {"zeroline": False, "automargin": True} | x,
        "yaxis": {"zeroline": False, "automargin": True} | y,
    }


def legend_above() -> dict[str, Any]:
    """The layout of a legend above the plot, which leaves the full width to the lines."""
    place = {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"}
    return {"legend": place, "showlegend": True, "margin": {"l": 56, "r": 12, "t": 40, "b": 48}}


def brief(name: str) -> str:
    """A name that is short enough for an axis."""
    return escape(name if len(name) <= 14 else name[:13] + "…")


def named_ticks(places: Sequence[int], names: Sequence[str]) -> dict[str, Any]:
    """The part of an axis that has a client's name at each of these places. Names longer than a number lean."""
    short = all(len(name) <= 3 for name in names)
    return {"tickvals": [*places], "ticktext": [brief(name) for name in names], "tickangle": 0 if short else -60}


def drawn_places(count: int) -> list[int]:
    """The places 0 to count - 1, or DOTS of them, evenly spaced, both ends among them."""
    found: list[int] = np.linspace(0, count - 1, min(count, DOTS)).round().astype(int).tolist()
    return found


def decades(low: float, high: float) -> list[float]:
    """Round numbers for a logarithmic axis: 1, 2, 5, 10, ... or, over a wide range, the powers of ten."""
    steps = (1, 2, 5) if high < 1000 * low else (1,)
    ticks = [step * 10**power if power >= 0 else step / 10**-power for power in range(-12, 12) for step in steps]
    return [tick for tick in ticks if low / 1.3 <= tick <= high * 1.3]


def gradient(tones: Sequence[str]) -> str:
    """A colour scale in CSS."""
    return f"linear-gradient(to right, {', '.join(tones)})"


def faint(colour: str, strength: float = 0.18) -> str:
    """The colour with this opacity."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{strength})"
