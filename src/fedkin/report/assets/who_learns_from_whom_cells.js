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
  const classOf = c => about.classes?.[c] ?? `class ${c}`;
  const kind = id => about.majority?.[id] >= 0 ? `${called(id)}: mostly ${classOf(about.majority[id])}` : "";
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
