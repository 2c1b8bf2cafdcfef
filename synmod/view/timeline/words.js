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
  if (s < 0.001) return `${Math.round(s * 1e6)} µs`;
  if (s < 1) return `${(s * 1000).toFixed(s < 0.01 ? 2 : 1)} ms`;
  return s < 100 ? `${s.toFixed(2)} s` : `${Math.round(s).toLocaleString("en")} s`;
};

const dollars = (usd) => (usd === null ? "no price known" : `$${usd < 0.01 ? usd.toPrecision(3) : usd.toFixed(2)}`);

const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

const tokensOf = (usage) => usage.prompt_tokens + usage.completion_tokens;

const nameOf = (row) => {
  if (row.kind === "model") return row.model;
  if (!row.path) return row.name;
  const last = row.path.split("/").at(-1);
  if (row.method) return `${last}.${row.method}`;
  return /^[0-9]+$/.test(last) ? `${last} ${row.name}` : last;  // a number alone says little
};

const looksOf = (row) => (row.error !== null ? "failed" : row.kind);
