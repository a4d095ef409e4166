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
