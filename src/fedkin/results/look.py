"""The script that draws the report's figures in the reader's colours, and the style of the page."""

from __future__ import annotations

import json

from fedkin.results.charts import COUNTED, LOST, NAMED, SCALES, faint


def maps() -> str:
    """The script that draws who learns from whom."""
    even = {name: [[i / (len(tones) - 1), tone] for i, tone in enumerate(tones)] for name, tones in SCALES.items()}
    known = {"NAMED": NAMED} | even
    return "".join(f"const {name} = {json.dumps(value)};\n" for name, value in known.items()) + MAPS


def rounds() -> str:
    """The script that draws who was selected when."""
    known: dict[str, object] = {"NAMED_ROWS": NAMED, "COUNTED": shades(COUNTED), "LOST": shades(LOST)}
    return "".join(f"const {name} = {json.dumps(value)};\n" for name, value in known.items()) + ROUNDS


def shades(tone: str) -> list[list[object]]:
    """From nothing at all to the full colour, over whatever is below; the least there is can be seen."""
    return [[0, faint(tone, 0)], [1e-6, faint(tone, 0.14)], [1, faint(tone, 1)]]


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
const clipped = name => name.length > 14 && !name.includes("&") ? name.slice(0, 13) + "…" : name;
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

# Pure, so that it can be tried without a page: what the cells of clients against rounds show and say.
ATTENDED = """
function attended(about) {
  const part = (a, b) => Number((100 * a / b).toPrecision(3)) + " %";
  const when = ([first, last]) => first === last ? `round ${first}` : `rounds ${first} to ${last}`;
  const cases = (i, j) => about.sizes[i] * (about.columns[j][1] - about.columns[j][0] + 1);
  const lost = (i, j) => about.lost?.[i][j] ?? 0;
  const became = (i, j) => !about.sent ? "" : lost(i, j) === 0 ? ", its update counted"
    : lost(i, j) === 1 ? ", but its update did not count" : `, its update counted ${part(1 - lost(i, j), 1)}`;
  const together = (i, j, n) => `selected in ${n} of ${cases(i, j)} cases` + (!about.sent || !n ? ""
    : lost(i, j) === 0 ? ", and every update counted" : `, and ${part(lost(i, j), n)} of their updates did not count`);
  const said = (n, i, j) => `${about.rows[i]}<br>${when(about.columns[j])}: ` + (cases(i, j) > 1 ? together(i, j, n)
    : n ? "selected" + became(i, j) : "not selected");
  const over = f => about.taken.map((row, i) => row.map((n, j) => f(n, i, j)));
  return {text: over(said), counted: over((n, i, j) => (n - lost(i, j)) / cases(i, j)),
    lost: about.lost && over((n, i, j) => lost(i, j) / cases(i, j))};
}
"""

ROUNDS = (
    ATTENDED
    + """
const rounds = JSON.parse(document.getElementById("rounds").textContent);
function attends() {
  const about = rounds[chosen("attended") ?? "0"], place = document.getElementById("attended"), found = attended(about);
  place.querySelector("p").textContent = about.said;
  place.querySelector(".note").textContent = about.note;
  const one = about.sizes.every(size => size === 1) && about.columns.every(([first, last]) => first === last);
  const most = `(strongest: from ${Number((100 * about.most).toPrecision(3))} % on)`;
  place.querySelector(".most").textContent = one ? "" : most;
  const tall = about.rows.length, wide = about.columns.length, apart = tall <= 60 && wide <= 120 ? 1 : 0;
  const style = styled(), of = name => style.getPropertyValue(name).trim();
  const common = {type: "heatmap", text: found.text, hovertemplate: "%{text}<extra></extra>", showscale: false,
    x: about.columns.map(([first]) => first + (about.columns[0][1] - about.columns[0][0]) / 2),
    zmin: 0, zmax: about.most, xgap: apart, ygap: apart};
  const data = [{...common, z: found.counted, colorscale: COUNTED}];
  if (found.lost) data.push({...common, z: found.lost, colorscale: LOST});
  const step = Math.ceil(tall / NAMED_ROWS), ticks = about.firsts.map((_, i) => i).filter(i => i % step === 0);
  const layout = coloured({height: Math.min(Math.max(tall * 15, 150), 460) + 76, autosize: true,
    margin: {l: 44, r: about.relevant === null ? 12 : 34, t: 28, b: 48}, hoverlabel: {align: "left"},
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: of("--faint"),
    xaxis: {title: {text: "round"}, showgrid: false, zeroline: false, fixedrange: true},
    yaxis: {title: {text: "client", standoff: 6}, showgrid: false, zeroline: false, fixedrange: true, automargin: true,
      range: [tall - 0.5, -0.5], ticks: "", tickfont: {size: 11}, tickvals: ticks,
      ticktext: ticks.map(i => clipped(about.firsts[i]))}});
  if (about.relevant !== null) {
    const line = {type: "line", xref: "paper", x0: 0, x1: 1, y0: about.relevant - 0.5, y1: about.relevant - 0.5};
    layout.shapes = [{...line, line: {color: of("--ink"), width: 1.5}}];
    const named = (text, y) => ({text, y, x: 1, xref: "paper", xanchor: "left", xshift: 4, textangle: 90,
      showarrow: false, font: {size: 12}});
    layout.annotations = [named("irrelevant", (about.relevant + tall - 1) / 2)];
    if (about.relevant) layout.annotations.push(named("relevant", (about.relevant - 1) / 2));
  }
  Plotly.react("attended-map", data, layout, settings);
}
for (const input of document.querySelectorAll('input[name="attended"]')) input.addEventListener("change", attends);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", attends);
attends();
"""
)

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
  --faint: #eef0f3; font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
@media (prefers-color-scheme: dark) { :root { --page: #14171c; --card: #1d2128; --ink: #eceef2; --soft: #a7aeba;
  --line: #343a44; --win: #7fe0b3; --win-back: #173a2b; --caution: #ffd58a; --caution-back: #3b2e12;
  --accent: #8db7f5; --blank: #3b424d; --faint: #2a2f38; } }
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
#comparison, #costs { width: 100%; }
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
#attended .keys > span:last-child i { background: var(--faint); border: 1px solid var(--line); }
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
