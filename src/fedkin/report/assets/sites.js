function searched(root) {
  const search = document.getElementById("site-search");
  if (!search || !root.contains(search)) return;
  const words = search.value.toLowerCase().split(/\s+/).filter(word => word);
  const rows = [...document.querySelectorAll("#site-table tbody tr")];
  for (const row of rows) row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
  const shown = rows.filter(row => !row.hidden).length;
  document.getElementById("site-count").textContent = words.length ? `${shown} of ${rows.length}` : "";
}
drawers.push(searched);
document.addEventListener("input", ({target}) => { if (target.id === "site-search") searched(document.body); });
