"""The report's figures, as plain dictionaries for plotly.js, and the script that draws them in the reader's colours.

Names of methods and clients are escaped here too, since plotly.js reads a little HTML in every text.
"""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

Figure = dict[str, Any]
Values = dict[int, list[float]]  # round -> a value a seed

# Okabe and Ito's colours, told apart by colour-blind readers; Local is grey wherever it appears.
PALETTE = ("#0072b2", "#d55e00", "#56b4e9", "#e69f00", "#cc79a7", "#009e73")
DASHES = ("solid", "dash", "dot", "dashdot")  # tell a seventh method from the first
ALONE = "#8a8f98"
BETTER, SAME, WORSE = "#2f9e6e", "#a9aeb6", "#9060b0"
NAMED = 30  # so many clients' names fit under the bars


def styles(names: list[str], local: str) -> dict[str, tuple[str, str]]:
    """A colour and a dash for each method, the same in every figure."""
    others = [name for name in names if name != local]
    cycle = [(PALETTE[i % len(PALETTE)], DASHES[i // len(PALETTE) % len(DASHES)]) for i in range(len(others))]
    return dict(zip(others, cycle, strict=True)) | {local: (ALONE, "solid")}


def layout(height: int, x: dict[str, Any], y: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """What all figures have in common; the script adds the colours of text and lines."""
    return {
        "height": height,
        "margin": {"l": 56, "r": 12, "t": 12, "b": 48},
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
        shortened = [escape(name if len(name) <= 14 else name[:13] + "…") for name in (names[i] for i in order)]
        x |= {"tickvals": bar["x"], "ticktext": shortened, "tickangle": -60, "title": {"text": ""}}
    gap = 0.25 if len(order) <= 150 else 0.0
    return {"data": [bar], "layout": layout(320, x, gain_axis(span), bargap=gap)}


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
    scale = {"type": "log", "dtick": "D2" if sizes.max() < 100 * sizes.min() else 1} if wide else {}
    x = {"title": {"text": "training samples" + (" (logarithmic)" if wide else "")}} | scale
    return {"data": [dots], "layout": layout(320, x, gain_axis(span))}


def selections(shares: dict[str, np.ndarray], names: list[str], style: dict[str, tuple[str, str]]) -> Figure:
    """In how many of the rounds each client was selected, from the most often to the least."""
    data = []
    for method, share in shares.items():
        order = np.argsort(-share, kind="stable")
        tone, dash = style[method]
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": escape(method),
                "x": list(range(1, len(order) + 1)),
                "y": (100 * share[order]).tolist(),
                "line": {"color": tone, "dash": dash, "shape": "hvh", "width": 2.5},
                "hovertext": [escape(names[i]) for i in order],
                "hovertemplate": "%{hovertext}: %{y:.1f} % of rounds",
            }
        )
    x = {"title": {"text": "clients, by how often they were selected"}, "showgrid": False}
    y = {"title": {"text": "% of rounds"}, "rangemode": "tozero"}
    top = {"margin": {"l": 56, "r": 12, "t": 40, "b": 48}}
    return {"data": data, "layout": layout(300, x, y, legend=legend(), showlegend=True) | top}


def span_of(gains: list[np.ndarray]) -> tuple[float, float]:
    """One scale for all methods' gains, so that panels can be compared by eye; it always holds zero."""
    low, high = min(0.0, *(float(g.min()) for g in gains)), max(0.0, *(float(g.max()) for g in gains))
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


def gain_axis(span: tuple[float, float]) -> dict[str, Any]:
    return {"title": {"text": "gain over alone, points"}, "range": list(span), "zeroline": True, "zerolinewidth": 2}


def colour(gain: float) -> str:
    return BETTER if gain > 0 else WORSE if gain < 0 else SAME


def faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"


SCRIPT = """
const figures = JSON.parse(document.getElementById("figures").textContent);
const styled = () => getComputedStyle(document.documentElement);
const axes = ["xaxis", "yaxis"];
function colours() {
  const style = styled(), of = name => style.getPropertyValue(name).trim();
  const found = {"font.color": of("--soft"), "font.family": style.fontFamily, "hoverlabel.bgcolor": of("--card"),
    "hoverlabel.bordercolor": of("--line"), "hoverlabel.font.color": of("--ink")};
  for (const axis of axes) Object.assign(found, {[axis + ".gridcolor"]: of("--line"),
    [axis + ".linecolor"]: of("--line"), [axis + ".zerolinecolor"]: of("--soft")});
  return found;
}
function coloured(layout) {
  for (const [path, value] of Object.entries(colours())) {
    const words = path.split("."), last = words.pop();
    words.reduce((inner, word) => inner[word] ??= {}, layout)[last] = value;
  }
  return layout;
}
const settings = {responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"]};
for (const [id, figure] of Object.entries(figures))
  Plotly.newPlot(id, figure.data, coloured(figure.layout), settings);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const id of Object.keys(figures)) Plotly.relayout(id, colours());
});
const chosen = name => document.querySelector(`input[name="${name}"]:checked`)?.value;
for (const input of document.querySelectorAll('input[name="kind"], input[name="average"]'))
  input.addEventListener("change", () => {
    const key = chosen("kind") + "/" + chosen("average");
    Plotly.restyle("curves", {visible: figures.curves.data.map(trace => trace.meta === key)});
    Plotly.relayout("curves", {"xaxis.autorange": true, "yaxis.autorange": true});
  });
for (const input of document.querySelectorAll('input[name="statistic"]'))
  input.addEventListener("change", () => document.getElementById("comparison").dataset.shows = input.value);
"""
