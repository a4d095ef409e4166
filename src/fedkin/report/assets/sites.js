const siteSearch = document.getElementById("site-search");
const siteRows = [...document.querySelectorAll("#site-table tbody tr")];
const siteTexts = siteRows.map(row => row.textContent.toLowerCase());
function showSites() {
  const words = siteSearch.value.toLowerCase().split(/\s+/).filter(word => word);
  let shown = 0;
  siteRows.forEach((row, i) => {
    row.hidden = !words.every(word => siteTexts[i].includes(word));
    shown += row.hidden ? 0 : 1;
  });
  document.getElementById("site-count").textContent = words.length ? `${shown} of ${siteRows.length}` : "";
}
siteSearch.addEventListener("input", showSites);
