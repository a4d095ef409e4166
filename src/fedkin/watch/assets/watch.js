const LOOK_AGAIN = 2000, HIDDEN = 5000; // milliseconds to the next question if nobody answered, or nobody looks
const LOST_WORDS = "The connection is lost: the command that showed this page has ended. This is what was known last.";
const main = document.querySelector("main"), lost = document.createElement("p");
lost.id = "lost";
lost.setAttribute("role", "status");
document.body.append(lost);
const pieces = new Map(), places = new Map(); // what was sent, by its check sum; the element of every section
const THEIRS = new Set(["open", "data-shows"]); // attributes that a reader's clicks change

// Changes an element into another one of the same kind, and leaves alone what is the same: so that what a reader has
// opened, chosen, scrolled to or zoomed into stays. The inside of a drawn figure belongs to plotly.
function patched(old, fresh) {
  if (old.classList.contains("js-plotly-plot")) {
    old.setAttribute("aria-label", fresh.getAttribute("aria-label") ?? "");
    return;
  }
  for (const {name, value} of [...fresh.attributes])
    if (old.getAttribute(name) !== value && !THEIRS.has(name)) old.setAttribute(name, value);
  for (const {name} of [...old.attributes])
    if (!fresh.hasAttribute(name) && !THEIRS.has(name)) old.removeAttribute(name);
  const before = [...old.childNodes], after = [...fresh.childNodes];
  after.forEach((node, i) => {
    const there = before[i];
    if (!there) old.append(node);
    else if (there.nodeType !== node.nodeType || there.nodeName !== node.nodeName || there.id !== node.id)
      there.replaceWith(node);
    else if (node.nodeType !== Node.ELEMENT_NODE) {
      if (there.data !== node.data) there.data = node.data;
    } else patched(there, node);
  });
  for (const node of before.slice(after.length)) node.remove();
}
function placed(name, html) {
  const fresh = document.createElement("div");
  fresh.innerHTML = html;
  fresh.dataset.section = name;
  const old = places.get(name)?.element;
  if (!old) return fresh;
  const newest = [...old.querySelectorAll('input[type="range"]')].filter(range => range.value === range.max);
  patched(old, fresh);
  for (const range of newest) range.value = range.max; // who looks at the last round goes on looking at the last round
  return old;
}
function shown(section) {
  const {name, html, stores: wanted} = section, before = places.get(name), says = JSON.stringify(section);
  if (before?.says === says) return;
  for (const [store, ids] of Object.entries(wanted)) {
    stores[store] ??= {};
    for (const [id, piece] of Object.entries(ids)) stores[store][id] = pieces.get(piece);
    for (const id of Object.keys(before?.wanted[store] ?? {})) if (!(id in ids)) delete stores[store][id];
  }
  const element = before?.html === html ? before.element : placed(name, pieces.get(html));
  places.set(name, {element, html, wanted, says});
  return element;
}
function taken(answer) {
  for (const [name, value] of Object.entries(answer.pieces)) pieces.set(name, value);
  const changed = answer.sections.map(shown);
  for (const [name, {element}] of places)
    if (!answer.sections.some(section => section.name === name)) { element.remove(); places.delete(name); }
  answer.sections.forEach(({name}, i) => {
    const {element} = places.get(name);
    if (main.children[i] !== element) main.insertBefore(element, main.children[i] ?? null);
  });
  for (const element of changed) if (element) drawn(element);
  const used = new Set(answer.sections.flatMap(({html, stores: wanted}) =>
    [html, ...Object.values(wanted).flatMap(ids => Object.values(ids))]));
  for (const name of [...pieces.keys()]) if (!used.has(name)) pieces.delete(name);
  document.title = `${answer.state}: ${answer.title}, fedkin`;
}
async function answered() {
  try {
    return await (await fetch("state.json?have=" + [...pieces.keys()].join("."))).json();
  } catch {
    return null;
  }
}
async function watched() {
  const answer = await answered();
  lost.textContent = answer ? "" : LOST_WORDS;
  if (answer) taken(answer);
  if (answer?.last) return;
  const wait = answer?.wait ?? LOOK_AGAIN;
  setTimeout(watched, document.hidden ? Math.max(wait, HIDDEN) : wait);
}
watched();
