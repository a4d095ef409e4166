"""What the report looks like: its figures, as plain dictionaries for plotly.js.

Names of methods and clients are escaped here too, since plotly.js reads a little HTML in every text.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

Figure = dict[str, Any]
Values = dict[int, list[float]]  # round -> a value a seed

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


def styles(names: list[str], local: str) -> dict[str, tuple[str, str]]:
    """A colour and a dash for each method, the same in every figure."""
    others = [name for name in names if name != local]
    cycle = [(PALETTE[i % len(PALETTE)], DASHES[i % len(DASHES)]) for i in range(len(others))]
    return dict(zip(others, cycle, strict=True)) | {local: (ALONE, "solid")}


def layout(height: int, x: dict[str, Any], y: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """What all figures have in common; the script adds the colours of text and lines."""
    return {
        "height": height,
        "margin": {"l": 56, "r": 12, "t": 28, "b": 48},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {"align": "left"},
        "xaxis": {"zeroline": False, "automargin": True} | x,
        "yaxis": {"zeroline": False, "automargin": True} | y,
        **rest,
    }


def legend() -> dict[str, Any]:
    """Above the plot, where it leaves the full width to the lines."""
    return {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"}


def curves(series: list[tuple[str, str, str, Values]], style: dict[str, tuple[str, str]], shown: str) -> Figure:
    """A line a method: the mean over seeds, and a band from the worst seed to the best. `series` has the method, its
    label, the kind and average ('post/macro') and the values; only those of `shown` are visible at first."""
    data: list[dict[str, Any]] = []
    for name, label, key, values in series:
        colour, dash = style[name]
        rounds = sorted(values)
        common = {"x": rounds, "meta": key, "visible": key == shown, "legendgroup": name, "mode": "lines"}
        lows, highs = ([100 * f(values[r]) for r in rounds] for f in (min, max))
        if any(len(values[r]) > 1 for r in rounds):
            edge = {"line": {"width": 0, "color": colour}, "hoverinfo": "skip", "showlegend": False}
            data.append(common | edge | {"y": lows})
            data.append(common | edge | {"y": highs, "fill": "tonexty", "fillcolor": faint(colour)})
        line = {
            "y": [100 * float(np.mean(values[r])) for r in rounds],
            "name": escape(label),
            "line": {"color": colour, "dash": dash, "width": 2.5},
            "customdata": [[low, high] for low, high in zip(lows, highs, strict=True)],
            "hovertemplate": "%{y:.2f} % (seeds: %{customdata[0]:.2f} to %{customdata[1]:.2f})",
        }
        few = {"mode": "lines+markers", "marker": {"size": 6, "color": colour}} if len(rounds) <= 15 else {}
        data.append(common | line | few)
    x = {"title": {"text": "round"}, "rangemode": "tozero"}
    y = {"title": {"text": "accuracy, %"}}
    top = {"margin": {"l": 56, "r": 12, "t": 40, "b": 48}}
    return {"data": data, "layout": layout(440, x, y, hovermode="x unified", legend=legend(), showlegend=True) | top}


def bars(gains: np.ndarray, texts: list[str], names: list[str], span: tuple[float, float]) -> Figure:
    """Every client's gain in points, sorted; colour repeats what the side of the zero line says."""
    order = np.argsort(gains, kind="stable")
    bar = {
        "type": "bar",
        "x": list(range(1, len(order) + 1)),
        "y": gains[order].tolist(),
        "marker": {"color": [colour(gains[i]) for i in order], "line": {"width": 0}},
        "hovertext": [texts[i] for i in order],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "showlegend": False,
    }
    x: dict[str, Any] = {"title": {"text": "clients, by gain"}, "showgrid": False}
    if len(order) <= NAMED:
        x |= {
            "tickvals": bar["x"],
            "ticktext": [brief(names[i]) for i in order],
            "tickangle": -60,
            "title": {"text": ""},
        }
    gap = 0.25 if len(order) <= 150 else 0.0
    return {"data": [bar], "layout": layout(320, x, gain_axis(span), bargap=gap)}


def brief(name: str) -> str:
    """A name that fits under a bar."""
    return escape(name if len(name) <= 14 else name[:13] + "…")


def scatter(gains: np.ndarray, sizes: np.ndarray, texts: list[str], span: tuple[float, float]) -> Figure:
    """Every client's gain against its number of training samples: who has a reason to join."""
    dots = {
        "type": "scatter",
        "mode": "markers",
        "x": sizes.tolist(),
        "y": gains.tolist(),
        "marker": {"color": [colour(gain) for gain in gains], "size": 8 if len(gains) <= 150 else 6, "opacity": 0.75},
        "hovertext": texts,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "showlegend": False,
    }
    wide = sizes.min() > 0 and sizes.max() >= 8 * sizes.min()
    x: dict[str, Any] = {"title": {"text": "training samples" + (" (logarithmic)" if wide else "")}}
    if wide:
        ticks = decades(float(sizes.min()), float(sizes.max()))
        x |= {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,}" for tick in ticks]}
    return {"data": [dots], "layout": layout(320, x, gain_axis(span))}


def spread(count: int) -> list[int]:
    """So many places, or DOTS of them, evenly spaced, both ends among them."""
    found: list[int] = np.linspace(0, count - 1, min(count, DOTS)).round().astype(int).tolist()
    return found


def selections(shares: dict[str, np.ndarray], names: list[str], style: dict[str, tuple[str, str]]) -> Figure:
    """In how many of the rounds each client was selected, from the most often to the least."""
    data = []
    for method, share in shares.items():
        order = np.argsort(-share, kind="stable")
        at = spread(len(order))
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
    top = {"margin": {"l": 56, "r": 12, "t": 40, "b": 48}}
    return {"data": data, "layout": layout(300, x, y, legend=legend(), showlegend=True) | top}


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
    y = {"range": reach(seeds, from_zero), "nticks": 5}
    x = {"title": {"text": "round"}, "rangemode": "tozero", "nticks": 6}
    return {"data": data, "layout": layout(190, x, y) | above}


def reach(values: np.ndarray, from_zero: bool) -> list[float]:
    """Amounts begin at zero and reach at least to one; what moves little far from zero is seen only without it."""
    low, high = float(values.min()), float(values.max())
    if from_zero:
        return [0.0, max(1.1 * high, 1.0)]
    room = max(0.15 * (high - low), 0.001 * abs(high), 1e-6)
    return [low - room, high + room]


def ramp(low: float, high: float) -> str:
    """The colour scale of the weights as HTML; its ends are marked, and the powers of ten that do not crowd them."""
    span = np.log10(high / low)
    places = {10.0**p: np.log10(10.0**p / low) / span for p in range(-9, 1)}
    ticks = {low: 0.0} | {tick: at for tick, at in places.items() if 0.24 < at < 0.82} | {high: 1.0}
    marks = "".join(
        f'<span style="left:{100 * at:.1f}%">{"≤ " if tick == low else ""}{100 * tick:.3g} %</span>'
        for tick, at in ticks.items()
    )
    return f'<div class="ramp"><i style="background:{gradient(VIRIDIS)}"></i><div>{marks}</div></div>'


def gradient(tones: Sequence[str]) -> str:
    return f"linear-gradient(to right, {', '.join(tones)})"


def decades(low: float, high: float) -> list[float]:
    """Round numbers for a logarithmic axis: 1, 2, 5, 10, ... or, over a wide range, the powers of ten."""
    steps = (1, 2, 5) if high < 1000 * low else (1,)
    ticks = [step * 10**power if power >= 0 else step / 10**-power for power in range(-12, 12) for step in steps]
    return [tick for tick in ticks if low / 1.3 <= tick <= high * 1.3]


def span_of(gains: list[np.ndarray]) -> tuple[float, float]:
    """One scale for all methods' gains, so that panels can be compared by eye; it always holds zero."""
    low, high = min(0.0, *(float(g.min()) for g in gains)), max(0.0, *(float(g.max()) for g in gains))
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


def gain_axis(span: tuple[float, float]) -> dict[str, Any]:
    return {"title": {"text": "gain over alone, points"}, "range": list(span), "zeroline": True, "zerolinewidth": 2}


def colour(gain: float) -> str:
    return BETTER if gain > 0 else WORSE if gain < 0 else SAME


def faint(colour: str, strength: float = 0.18) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{strength})"
