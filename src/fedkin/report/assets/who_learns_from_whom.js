// Names stand upright or lie: leaning, the last one would stick out, and plotly would leave it away.
const axis = (title, ids, about, range) => ({title: {text: title, standoff: 6}, range, showgrid: false, zeroline: false,
  automargin: true, fixedrange: true, autotickangles: [0, 90], tickfont: {size: 11}, ticks: "",
  showticklabels: ids.length <= NAMED, tickvals: ids.map((_, i) => i), ticktext: ids.map(id => clipped(about.names[id]))});
function mapped(id) {
  const about = stores.kin[id], place = document.getElementById(id);
  const step = about.steps[place.querySelector('input[type="range"]')?.value ?? 0];
  const all = (place.querySelector(".view input:checked")?.value ?? place.dataset.view) === "all";
  for (const output of place.querySelectorAll("output")) output.textContent = "round " + step.round;
  for (const panel of place.querySelectorAll(".panel")) {
    const component = Number(panel.querySelector("select")?.value ?? panel.dataset.component);
    figured(panel.querySelector(".map"), null, () => {
      const found = cells(about, step, component, all);
      panel.querySelector("small").textContent = `own model: ${shares(found.kept)} on average`;
      const common = {type: "heatmap", text: found.text, hovertemplate: "%{text}<extra></extra>", hoverongaps: false,
        showscale: false, xgap: found.across.length > 60 ? 0 : 1, ygap: found.down.length > 60 ? 0 : 1};
      const nothing = styled().getPropertyValue("--card").trim();
      const data = [
        {...common, z: found.others, colorscale: WEIGHTS, zmin: Math.log10(about.low), zmax: Math.log10(about.high)},
        {...common, z: found.none, colorscale: [[0, nothing], [1, nothing]], zmin: 0, zmax: 1},
        {...common, z: found.own, colorscale: OWN, zmin: 0, zmax: 1}];
      const layout = {margin: {l: 34, r: 4, t: 28, b: 34}, paper_bgcolor: "rgba(0,0,0,0)", autosize: true,
        hoverlabel: {align: "left"},
        xaxis: axis("learned from", found.across, about, [-0.5, found.across.length - 0.5]),
        yaxis: axis("client", found.down, about, [found.down.length - 0.5, -0.5]), plot_bgcolor: styled().getPropertyValue("--blank").trim()};
      return [data, layout];
    });
  }
}
function played(id, button) {
  const range = document.getElementById(id).querySelector('input[type="range"]');
  if (button.timer) { clearInterval(button.timer); button.timer = null; button.textContent = "Play"; return; }
  if (Number(range.value) === Number(range.max)) range.value = 0;
  button.textContent = "Stop";
  mapped(id);
  button.timer = setInterval(() => {
    range.value = Number(range.value) + 1;
    mapped(id);
    if (Number(range.value) === Number(range.max)) played(id, button);
  }, 600);
}
drawers.push(root => {
  for (const id of Object.keys(stores.kin ?? {})) if (root.contains(document.getElementById(id))) mapped(id);
});
const mapAround = target => target.closest("[data-view]")?.id;
document.addEventListener("input", ({target}) => { if (mapAround(target)) mapped(mapAround(target)); });
document.addEventListener("click", ({target}) => {
  if (target.tagName === "BUTTON" && mapAround(target)) played(mapAround(target), target);
});
