"""What the report looks like: its figures, as plain dictionaries for plotly.js, the script that draws them in the
reader's colours, and the style of the page.

Names of methods and clients are escaped here too, since plotly.js reads a little HTML in every text.
"""

from __future__ import annotations

import json
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
NAMED = 30  # so many clients' names fit under the bars


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
    x: dict[str, Any] = {"title": {"text": "training samples" + (" (logarithmic)" if wide else "")}}
    if wide:
        ticks = decades(float(sizes.min()), float(sizes.max()))
        x |= {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,}" for tick in ticks]}
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


def maps() -> str:
    """The script that draws who learns from whom."""
    even = {name: [[i / (len(tones) - 1), tone] for i, tone in enumerate(tones)] for name, tones in SCALES.items()}
    known = {"NAMED": NAMED} | even
    return "".join(f"const {name} = {json.dumps(value)};\n" for name, value in known.items()) + MAPS


def decades(low: float, high: float) -> list[int]:
    """Round numbers for a logarithmic axis: 1, 2, 5, 10, ... or, over a wide range, the powers of ten."""
    steps = (1, 2, 5) if high < 1000 * low else (1,)
    ticks = [step * 10**power for power in range(12) for step in steps]
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
    "hoverlabel.bordercolor": of("--line"), "hoverlabel.font.color": of("--ink"),
    "modebar.bgcolor": "rgba(0,0,0,0)", "modebar.color": of("--soft"), "modebar.activecolor": of("--ink")};
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
const settings = {responsive: true, displaylogo: false, modeBarButtons: [["toImage"]]};
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

# Pure, so that it can be tried without a page: what a panel shows of one round.
CELLS = """
function shares(weight) {
  if (!weight) return "nothing";
  const percent = 100 * weight;
  return (percent < 0.01 ? percent.toExponential(1) : String(Number(percent.toPrecision(percent < 99 ? 3 : 4)))) + " %";
}
function cells(about, step, component, all) {
  const row = new Map(step.ids.map((id, i) => [id, i])), column = new Map(step.sources.map((id, i) => [id, i]));
  const down = about.order.filter(id => all || row.has(id)), across = about.order.filter(id => all || column.has(id));
  const weights = step.weights[component], from = Math.log10(about.low);
  const place = `(round ${step.round}, ${about.components[component]})`, called = id => `client ${about.names[id]}`;
  const kind = id => about.majority?.[id] >= 0 ? `${called(id)}: mostly class ${about.majority[id]}` : "";
  const said = (a, b, w) => a === b ? `${called(a)} keeps ${shares(w)} of its own ${place}`
    : `${called(a)} takes ${shares(w)} from ${called(b)} ${place}`;
  const hover = (a, b, w) => [said(a, b, w), kind(a), a === b ? "" : kind(b)].filter(Boolean).join("<br>");
  const cell = (a, b, f) => row.has(a) && column.has(b) ? f(a, b, weights[row.get(a)][column.get(b)]) : null;
  const over = f => down.map(a => across.map(b => cell(a, b, f)));
  let kept = 0;
  for (const id of step.ids) kept += weights[row.get(id)][column.get(id)] / step.ids.length;
  return {down, across, kept, text: over(hover), own: over((a, b, w) => a === b ? w : null),
    none: over((a, b, w) => a === b || w ? null : 0),
    others: over((a, b, w) => a === b || !w ? null : Math.max(from, Math.log10(w)))};
}
"""

MAPS = (
    CELLS
    + """
const kin = JSON.parse(document.getElementById("kin").textContent);
const clipped = name => name.length > 14 && !name.includes("&") ? name.slice(0, 13) + "…" : name;
const axis = (title, ids, about, range) => ({title: {text: title, standoff: 6}, range, showgrid: false, zeroline: false,
  automargin: true, fixedrange: true, tickfont: {size: 11}, showticklabels: ids.length <= NAMED, ticks: "",
  tickvals: ids.map((_, i) => i), ticktext: ids.map(id => clipped(about.names[id]))});
function drawn(id) {
  const about = kin[id], place = document.getElementById(id);
  const step = about.steps[place.querySelector('input[type="range"]')?.value ?? 0];
  const all = (place.querySelector(".view input:checked")?.value ?? place.dataset.view) === "all";
  for (const output of place.querySelectorAll("output")) output.textContent = "round " + step.round;
  for (const panel of place.querySelectorAll(".panel")) {
    const component = Number(panel.querySelector("select")?.value ?? panel.dataset.component);
    const found = cells(about, step, component, all), map = panel.querySelector(".map");
    panel.querySelector("small").textContent = `own model: ${shares(found.kept)} on average`;
    const common = {type: "heatmap", text: found.text, hovertemplate: "%{text}<extra></extra>", hoverongaps: false,
      showscale: false, xgap: found.across.length > 60 ? 0 : 1, ygap: found.down.length > 60 ? 0 : 1};
    const nothing = styled().getPropertyValue("--card").trim();
    const data = [
      {...common, z: found.others, colorscale: WEIGHTS, zmin: Math.log10(about.low), zmax: Math.log10(about.high)},
      {...common, z: found.none, colorscale: [[0, nothing], [1, nothing]], zmin: 0, zmax: 1},
      {...common, z: found.own, colorscale: OWN, zmin: 0, zmax: 1}];
    const layout = coloured({margin: {l: 34, r: 4, t: 28, b: 34}, paper_bgcolor: "rgba(0,0,0,0)", autosize: true,
      hoverlabel: {align: "left"},
      xaxis: axis("learned from", found.across, about, [-0.5, found.across.length - 0.5]),
      yaxis: axis("client", found.down, about, [found.down.length - 0.5, -0.5])});
    layout.plot_bgcolor = styled().getPropertyValue("--blank").trim();
    Plotly.react(map, data, layout, settings);
  }
}
function played(id, button) {
  const range = document.getElementById(id).querySelector('input[type="range"]');
  if (button.timer) { clearInterval(button.timer); button.timer = null; button.textContent = "Play"; return; }
  if (Number(range.value) === Number(range.max)) range.value = 0;
  button.textContent = "Stop";
  drawn(id);
  button.timer = setInterval(() => {
    range.value = Number(range.value) + 1;
    drawn(id);
    if (Number(range.value) === Number(range.max)) played(id, button);
  }, 600);
}
for (const id of Object.keys(kin)) {
  const place = document.getElementById(id);
  for (const control of place.querySelectorAll("input, select")) control.addEventListener("input", () => drawn(id));
  for (const button of place.querySelectorAll("button")) button.addEventListener("click", () => played(id, button));
  drawn(id);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Object.keys(kin).forEach(drawn));
"""
)

STYLE = """
:root { --page: #f6f7f9; --card: #ffffff; --ink: #1b1f26; --soft: #565d69; --line: #e0e3e8; --win: #17714b;
  --win-back: #ddf3e8; --caution: #7a4b00; --caution-back: #fff3d9; --accent: #24539b; --blank: #d8dbe1;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
@media (prefers-color-scheme: dark) { :root { --page: #14171c; --card: #1d2128; --ink: #eceef2; --soft: #a7aeba;
  --line: #343a44; --win: #7fe0b3; --win-back: #173a2b; --caution: #ffd58a; --caution-back: #3b2e12;
  --accent: #8db7f5; --blank: #3b424d; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font-size: 16px; line-height: 1.55; }
main { max-width: 1320px; margin: 0 auto; padding: 40px 24px 64px; }
.name { margin: 0; color: var(--soft); font-size: 14px; letter-spacing: .02em; }
h1 { margin: 6px 0 14px; font-size: clamp(26px, 4vw, 40px); line-height: 1.18; letter-spacing: -.02em;
  max-width: 30em; overflow-wrap: anywhere; }
h2 { margin: 0 0 12px; font-size: 21px; letter-spacing: -.01em; }
h3 { margin: 0 0 4px; font-size: 17px; overflow-wrap: anywhere; }
.lede p { margin: 0 0 8px; max-width: 52em; font-size: 17px; }
.caution { max-width: 60em; margin: 12px 0 0; padding: 10px 14px; border-radius: 8px; color: var(--caution);
  background: var(--caution-back); overflow-wrap: anywhere; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(165px, 1fr)); gap: 1px; margin: 22px 0 0;
  background: var(--line); border: 1px solid var(--line); border-radius: 10px; overflow: hidden; }
.facts div { padding: 12px 16px; background: var(--card); }
.facts dt { color: var(--soft); font-size: 13px; }
.facts dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
.facts small { display: block; font-size: 13px; }
section { margin-top: 24px; padding: 24px; border: 1px solid var(--line); border-radius: 12px;
  background: var(--card); }
article { margin-top: 22px; padding-top: 20px; border-top: 1px solid var(--line); }
article p { margin: 0 0 8px; max-width: 66em; }
.note { margin: 10px 0 0; color: var(--soft); font-size: 14.5px; max-width: 66em; }
.wide { overflow-x: auto; margin: 0 -24px; padding: 0 24px; }
.tall { max-height: 480px; overflow-y: auto; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
#comparison { width: 100%; }
th, td { padding: 8px 7px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
thead th { color: var(--soft); font-weight: 500; font-size: 13px; vertical-align: bottom; }
thead th[colspan] { text-align: center; border-bottom: 0; padding-bottom: 0; font-weight: 600; color: var(--ink); }
thead th:first-child[rowspan], tbody th, details thead th:first-child { text-align: left; }
tbody th { position: sticky; left: 0; background: var(--card); font-weight: 600; }
.first, thead th[colspan] { padding-left: 18px; }
tbody tr:last-child > * { border-bottom: 0; }
.none { text-align: left; color: var(--soft); font-style: italic; }
table[data-shows] td span { display: none; }
table[data-shows="last10"] .last10, table[data-shows="last"] .last, table[data-shows="best"] .best,
table[data-shows="validated"] .validated { display: inline !important; }
.win { padding: 2px 9px; border-radius: 99px; color: var(--win); background: var(--win-back); font-weight: 600; }
.chip { display: inline-block; width: .72em; height: .72em; margin-right: .5em; border-radius: 3px; }
small { color: var(--soft); font-weight: 400; }
.choices { display: flex; flex-wrap: wrap; gap: 8px 24px; }
.choice { display: flex; flex-wrap: wrap; align-items: center; gap: 6px; margin: 0 0 12px; padding: 0; border: 0; }
.choice legend { float: left; margin-right: 6px; padding: 0; color: var(--soft); font-size: 14px; }
.choice input { position: absolute; opacity: 0; }
.choice span { display: inline-block; padding: 4px 12px; border: 1px solid var(--line); border-radius: 99px;
  font-size: 14px; cursor: pointer; }
.choice input:checked + span { border-color: var(--accent); color: var(--accent); font-weight: 600; }
.choice input:focus-visible + span { outline: 2px solid var(--accent); outline-offset: 2px; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 8px 24px; }
.chart { min-width: 0; }
.trio { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 250px), 1fr)); gap: 8px 24px; }
.kin { display: grid; gap: 8px 32px; margin-top: 10px; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 270px), 1fr)); gap: 14px 20px; }
.panel { min-width: 0; max-width: 560px; }
.panel h4 { margin: 0; font-size: 15px; overflow-wrap: anywhere; }
.panel h4 select { max-width: 100%; font: inherit; color: inherit; background: var(--card);
  border: 1px solid var(--line); border-radius: 6px; }
.panel small { display: block; font-size: 13.5px; }
.map { aspect-ratio: 1; min-width: 0; margin-top: -24px; }
.steps { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 14px; margin: 12px 0; }
.steps input { flex: 1 1 180px; max-width: 420px; accent-color: var(--accent); }
.steps output { min-width: 6.5em; font-weight: 600; font-variant-numeric: tabular-nums; }
.steps button { padding: 3px 14px; border: 1px solid var(--line); border-radius: 99px; font: inherit; font-size: 14px;
  color: inherit; background: none; cursor: pointer; }
.keys { display: flex; flex-wrap: wrap; align-items: flex-start; gap: 6px 26px; margin: 12px 0; font-size: 13.5px;
  color: var(--soft); }
.keys > span { display: inline-flex; align-items: center; gap: 7px; }
.keys > span > i { width: 14px; height: 14px; border-radius: 3px; background: var(--blank); }
.keys .nothing { background: var(--card); border: 1px solid var(--soft); }
.ramp { width: min(280px, 80%); margin: 0 24px; }
.ramp i { display: block; height: 14px; border-radius: 3px; }
.ramp div { position: relative; height: 20px; }
.ramp span { position: absolute; transform: translateX(-50%); white-space: nowrap; font-size: 12.5px; }
@media (min-width: 940px) { .kin.one { grid-template-columns: minmax(0, 560px) minmax(0, 1fr); }
  .kin.one .trio { grid-template-columns: 1fr; align-content: start; } }
details { margin-top: 12px; }
summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere; }
details .wide { margin: 10px 0 0; padding: 0; }
details thead th { position: sticky; top: 0; background: var(--card); }
pre { overflow-x: auto; padding: 14px; border-radius: 8px; background: var(--page); font-size: 13px;
  line-height: 1.45; }
.words { display: grid; grid-template-columns: minmax(7em, max-content) 1fr; gap: 8px 24px; margin: 0; }
.words dt { font-weight: 600; }
.words dd { margin: 0; max-width: 56em; color: var(--soft); }
@media (max-width: 640px) { main { padding: 24px 12px 40px; } section { padding: 18px 14px; }
  .wide { margin: 0 -14px; padding: 0 14px; } .words { grid-template-columns: 1fr; gap: 2px; }
  .words dd { margin-bottom: 10px; } }
@media print { body { background: none; } section { break-inside: avoid; } .choice, .steps, details { display: none; } }
"""
