function attends(root) {
  const place = document.getElementById("attended"), about = stores.rounds?.[chosen("attended") ?? "0"];
  if (!about || !place || !root.contains(place)) return;
  place.querySelector("p").textContent = about.said;
  place.querySelector(".note").textContent = about.note;
  const one = about.sizes.every(size => size === 1) && about.columns.every(([first, last]) => first === last);
  const most = `(strongest: from ${Number((100 * about.most).toPrecision(3))} % on)`;
  place.querySelector(".most").textContent = one ? "" : most;
  const tall = about.rows.length, wide = about.columns.length, apart = tall <= 60 && wide <= 120 ? 1 : 0;
  const height = Math.min(Math.max(tall * 15, 150), 460) + 76;
  figured(document.getElementById("attended-map"), height, () => {
    const found = attended(about);
    const style = styled(), of = name => style.getPropertyValue(name).trim();
    const common = {type: "heatmap", text: found.text, hovertemplate: "%{text}<extra></extra>", showscale: false,
      x: about.columns.map(([first]) => first + (about.columns[0][1] - about.columns[0][0]) / 2),
      zmin: 0, zmax: about.most, xgap: apart, ygap: apart};
    const data = [{...common, z: found.counted, colorscale: COUNTED}];
    if (found.lost) data.push({...common, z: found.lost, colorscale: LOST});
    const step = Math.ceil(tall / NAMED_ROWS), ticks = about.firsts.map((_, i) => i).filter(i => i % step === 0);
    const layout = {autosize: true,
      margin: {l: 44, r: about.relevant === null ? 12 : 34, t: 28, b: 48}, hoverlabel: {align: "left"},
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: of("--faint"),
      xaxis: {title: {text: "round"}, showgrid: false, zeroline: false, fixedrange: true},
      yaxis: {title: {text: "client", standoff: 6}, showgrid: false, zeroline: false, fixedrange: true, automargin: true,
        range: [tall - 0.5, -0.5], ticks: "", tickfont: {size: 11}, tickvals: ticks,
        ticktext: ticks.map(i => clipped(about.firsts[i]))}};
    if (about.relevant !== null) {
      const line = {type: "line", xref: "paper", x0: 0, x1: 1, y0: about.relevant - 0.5, y1: about.relevant - 0.5};
      layout.shapes = [{...line, line: {color: of("--ink"), width: 1.5}}];
      const named = (text, y) => ({text, y, x: 1, xref: "paper", xanchor: "left", xshift: 4, textangle: 90,
        showarrow: false, font: {size: 12}});
      layout.annotations = [named("irrelevant", (about.relevant + tall - 1) / 2)];
      if (about.relevant) layout.annotations.push(named("relevant", (about.relevant - 1) / 2));
    }
    return [data, layout];
  });
}
drawers.push(attends);
document.addEventListener("change", ({target}) => { if (target.name === "attended") attends(document.body); });
