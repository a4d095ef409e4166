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
