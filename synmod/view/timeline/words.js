// Words, numbers and elements: every text goes in as text, never as markup.

const element = (tag, className = "", text = null) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== null) made.textContent = text;
  return made;
};

const byId = (id) => document.getElementById(id);

const seconds = (s) => {
  if (s === null) return "running";
  const [part, unit] = s < 0.001 ? [s * 1e6, "µs"] : s < 1 ? [s * 1000, "ms"] : [s, "s"];
  return `${part < 100 && unit !== "µs" ? Number(part.toPrecision(3)) : Math.round(part).toLocaleString("en")} ${unit}`;
};

const dollars = (usd) => {
  if (usd === null) return "no price known";
  const digits = usd < 1 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 2 };
  return `$${usd.toLocaleString("en", digits)}`;
};

const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

const tokensOf = (usage) => usage.prompt_tokens + usage.completion_tokens;

const nameOf = (row) => {
  if (row.kind === "model") return row.model;
  if (!row.path) return row.name;
  const last = row.path.split("/").at(-1);
  if (row.method) return `${last}.${row.method}`;
  return /^[0-9]+$/.test(last) ? `${last} ${row.name}` : last;  // a number alone says little
};

// In one line, for a pointer that rests on a bar.
const briefly = (row) => [
  nameOf(row),
  seconds(row.elapsed_s),
  tokensOf(row.usage) ? count(tokensOf(row.usage), "token") : "",
  row.usage.cost_usd ? dollars(row.usage.cost_usd) : "",
  row.cached ? "cached" : "",
  row.attempts > 1 ? `${row.attempts} attempts` : "",
  row.error?.slice(0, 200) ?? "",
].filter(Boolean).join(" · ");

const looksOf = (row) => (row.error !== null ? "failed" : row.kind);
