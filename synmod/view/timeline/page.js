// The page: reads the data, and lets chart, tree, details and search speak to each other.

const trace = JSON.parse(byId("trace").textContent);
const rows = trace.rows, span = measured(rows), below = belowOf(rows);

const panel = details(rows, below);
const choose = (number) => {
  if (!(number in rows)) return;
  tree.choose(number);
  picture.choose(number);
  panel.show(number);
  history.replaceState(null, "", `#${number}`);
};
const look = (part) => {
  picture.look(part);
  tree.look(part);
  const isPart = part.first > span.first || part.last < span.last;
  byId("whole").hidden = !isPart;
  byId("window").textContent = isPart
    ? `${seconds(part.first - span.first)} to ${seconds(part.last - span.first)}`
    : "Drag to look closer, click to choose a call.";
};
const tree = list(rows, span, choose);
const picture = chart(rows, below, span, choose, look);

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

const search = () => {
  const wanted = byId("search").value.trim().toLowerCase(), failed = byId("failed").checked;
  if (!wanted && !failed) {
    byId("found").textContent = "";
    tree.keep(null);
    return;
  }
  const kept = new Map();  // those found, and without being found those above them
  let found = 0;
  rows.forEach((row, number) => {
    if ((failed && row.error === null) || (wanted && !textOf(number).includes(wanted))) return;
    found += 1;
    kept.set(number, true);
    for (let above = row.parent; above >= 0 && !kept.has(above); above = rows[above].parent) kept.set(above, false);
  });
  byId("found").textContent = `${found.toLocaleString("en")} found`;
  tree.keep(kept);
};

byId("search").addEventListener("input", search);
byId("failed").addEventListener("change", search);
byId("whole").addEventListener("click", () => look({ ...span }));
byId("fold").addEventListener("click", () => {
  const close = byId("fold").textContent === "Collapse all";
  byId("fold").textContent = close ? "Expand all" : "Collapse all";
  tree.foldAll(close);
});
window.addEventListener("resize", () => { picture.draw(); tree.draw(); });
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => picture.draw());
window.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input[type=search]")) return;
  event.preventDefault();
  byId("search").focus();
});

facts();
tree.arrange();
look({ ...span });
const asked = decodeURIComponent(location.hash.slice(1));
if (asked.startsWith("search=")) {
  byId("search").value = asked.slice(7);
  search();
} else if (asked !== "") choose(Number(asked));
document.documentElement.dataset.ready = Math.round(performance.now());
