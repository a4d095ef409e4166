const stores = {figures: {}};
for (const element of document.querySelectorAll('script[type="application/json"]'))
  stores[element.id] = JSON.parse(element.textContent);
const drawers = []; // each draws what it has to draw inside of an element
const drawn = root => { for (const draw of drawers) draw(root); };
const styled = () => getComputedStyle(document.documentElement);
function colours() {
  const style = styled(), of = name => style.getPropertyValue(name).trim();
  const found = {"font.color": of("--soft"), "font.family": style.fontFamily, "hoverlabel.bgcolor": of("--card"),
    "hoverlabel.bordercolor": of("--line"), "hoverlabel.font.color": of("--ink"),
    "modebar.bgcolor": "rgba(0,0,0,0)", "modebar.color": of("--soft"), "modebar.activecolor": of("--ink")};
  for (const axis of ["xaxis", "yaxis"]) Object.assign(found, {[axis + ".gridcolor"]: of("--line"),
    [axis + ".linecolor"]: of("--line"), [axis + ".zerolinecolor"]: of("--soft")});
  return found;
}
function coloured(layout) {
  const made = {uirevision: "kept", ...structuredClone(layout)}; // what a reader zoomed or hid stays so when redrawn
  for (const [path, value] of Object.entries(colours())) {
    const words = path.split("."), last = words.pop();
    words.reduce((inner, word) => inner[word] ??= {}, made)[last] = value;
  }
  return made;
}
const settings = {responsive: true, displaylogo: false, modeBarButtons: [["toImage"]]};
const clipped = name => name.length > 14 && !name.includes("&") ? name.slice(0, 13) + "…" : name;
const chosen = name => document.querySelector(`input[name="${name}"]:checked`)?.value;
const asked = () => chosen("kind") + "/" + chosen("average"); // which lines of the curves the reader wants to see
const visible = trace => trace.meta === undefined ? trace : {...trace, visible: trace.meta === asked()};
// A long name of a method in lines that fit onto a phone: it is broken after a comma or an at.
function wrapped(name) {
  const lines = [];
  for (const part of name.split(/(?<=[@,])/))
    if (lines.length && lines.at(-1).length + part.length <= 30) lines.push(lines.pop() + part);
    else lines.push(part);
  return lines.join("<br>");
}
const waiting = new Map(); // places of figures that are yet to be drawn, and what draws each
function drawnNow(place) {
  const draw = waiting.get(place);
  waiting.delete(place);
  near?.unobserve(place);
  if (draw && place.isConnected) draw();
}
const near = window.IntersectionObserver && new IntersectionObserver(
  seen => { for (const {isIntersecting, target} of seen) if (isIntersecting) drawnNow(target); }, {rootMargin: "50%"});
const idle = window.requestIdleCallback ?? (work => setTimeout(work, 1));
let busy = false;
function next() {
  const [place] = waiting.keys();
  busy = place !== undefined;
  if (!busy) return;
  idle(next, {timeout: 1000});
  drawnNow(place);
}
addEventListener("beforeprint", () => { for (const place of [...waiting.keys()]) drawnNow(place); });
// Draws a figure: anew at once, but for the first time when the reader comes near it, when the page is printed, or when
// nothing else is to be done, so that a page can be read before its last figure is drawn. `made` gives the data and the
// layout. Its place has the figure's height from the beginning, so that nothing moves when it is drawn, and for when a
// screen turns: plotly then forgets the height and asks the place.
function figured(place, height, made) {
  if (height) place.style.height = height + "px";
  const draw = () => {
    const [data, layout] = made(), {height: _, ...rest} = coloured(layout);
    const named = data.map(trace => trace.name ? {...trace, name: wrapped(trace.name)} : trace);
    Plotly.react(place, named, {autosize: true, ...rest}, settings);
  };
  if (place.classList.contains("js-plotly-plot")) return draw();
  waiting.set(place, draw);
  near?.observe(place);
  if (!busy) idle(next, {timeout: 1000});
  busy = true;
}
drawers.push(root => {
  for (const [id, figure] of Object.entries(stores.figures)) {
    const place = document.getElementById(id);
    if (place && root.contains(place))
      figured(place, figure.layout.height, () => [figure.data.map(visible), figure.layout]);
  }
});
document.addEventListener("change", ({target}) => {
  if (target.name === "statistic") document.getElementById("comparison").dataset.shows = target.value;
  if (target.name !== "kind" && target.name !== "average") return;
  drawnNow(document.getElementById("curves"));
  Plotly.restyle("curves", {visible: stores.figures.curves.data.map(trace => trace.meta === asked())});
  Plotly.relayout("curves", {"xaxis.autorange": true, "yaxis.autorange": true});
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn(document.body));
