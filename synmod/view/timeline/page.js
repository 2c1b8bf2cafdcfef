// The page: reads the data, and lets chart, tree, details and search speak to each other.

const trace = JSON.parse(byId("trace").textContent);
const rows = trace.rows, span = measured(rows), below = belowOf(rows);

const panel = details(rows, below);
let chosen = -1;
const choose = (number) => {
  if (!(number in rows)) return;
  chosen = number;
  tree.choose(number);
  picture.choose(number);
  panel.show(number);
  history.replaceState(null, "", `#${number}`);
};
// Look at a part of the time, at one call with all below it, or, with neither, at all.
const look = (part, root = -1) => {
  const whole = root < 0 ? span : measured(within(rows, span, root, span.last).map((number) => rows[number]));
  const seen = part ?? whole, isPart = part !== null || root >= 0;
  picture.look(seen, root);
  tree.look(seen);
  byId("whole").hidden = !isPart;
  byId("window").textContent = root >= 0
    ? `${nameOf(rows[root])}: ${seconds(seen.last - seen.first)}`
    : isPart ? `${seconds(seen.first - span.first)} to ${seconds(seen.last - span.first)}`
      : "Drag to look closer, click to choose a call.";
};
const tree = list(rows, span, choose);
const picture = chart(rows, span, choose, look);

const facts = () => {
  const modules = rows.filter((row) => row.kind === "module").length;
  const failed = rows.filter((row) => row.error !== null).length;
  const told = [
    count(modules, "call"),
    count(rows.length - modules, "model call"),
    seconds(rows.length ? span.last - span.first : 0),
    count(tokensOf(trace.usage), "token"),
    trace.usage.calls ? dollars(trace.usage.cost_usd) : "",
    failed ? count(failed, "error") : "",
    trace.dropped ? `${count(trace.dropped, "older entry call")} dropped` : "",
  ];
  byId("facts").append(...told.filter(Boolean).map((text) => element("dd", /errors?$/.test(text) ? "bad" : "", text)));
};

const texts = [];  // what a call is searched by, written when it is first searched
const textOf = (number) => (texts[number] ??= JSON.stringify({ ...rows[number], usage: null }).replaceAll('\\"', '"').toLowerCase());

const hits = new Set();
const search = () => {
  const wanted = byId("search").value.trim().toLowerCase(), failed = byId("failed").checked;
  if (!wanted && !failed) {
    byId("found").textContent = "";
    tree.keep(null);
    picture.keep(null);
    return;
  }
  const kept = new Map();  // those found, and without being found those above them
  hits.clear();
  rows.forEach((row, number) => {
    if ((failed && row.error === null) || (wanted && !textOf(number).includes(wanted))) return;
    hits.add(number);
    kept.set(number, true);
    for (let above = row.parent; above >= 0 && !kept.has(above); above = rows[above].parent) kept.set(above, false);
  });
  byId("found").textContent = `${hits.size.toLocaleString("en")} found`;
  tree.keep(kept);
  picture.keep(hits);
};

byId("search").addEventListener("input", search);
byId("failed").addEventListener("change", search);
byId("whole").addEventListener("click", () => look(null));
byId("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter") tree.next((number) => hits.has(number), event.shiftKey ? -1 : 1);
  if (event.key !== "Escape") return;
  event.stopPropagation();
  byId("search").value = "";
  search();
  byId("calls").focus();
});
byId("fold").addEventListener("click", () => {
  const close = byId("fold").textContent === "Collapse all";
  byId("fold").textContent = close ? "Expand all" : "Collapse all";
  tree.foldAll(close);
});
window.addEventListener("resize", () => { picture.draw(); tree.draw(); });
const failing = (number) => rows[number].error !== null;
const keys = {
  "/": () => byId("search").focus(),
  n: () => tree.next(failing, 1),
  N: () => tree.next(failing, -1),
  z: () => chosen >= 0 && look(null, chosen),
  Escape: () => look(null),
};
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => picture.draw());
window.addEventListener("keydown", (event) => {
  if (!(event.key in keys) || event.target.matches("input[type=search]")) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  keys[event.key]();
});

facts();
tree.arrange();
look(null);
const asked = decodeURIComponent(location.hash.slice(1));
if (asked.startsWith("search=")) {
  byId("search").value = asked.slice(7);
  search();
} else if (asked !== "") choose(Number(asked));
document.documentElement.dataset.ready = Math.round(performance.now());
