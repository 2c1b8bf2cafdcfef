// The panel beside the tree: all that is known of one call.

const MOST_FIELDS = 40;  // a record of more is shown as JSON
const MOST_ASKED = 20;  // so many model calls are told with their module; the others are lines of the tree

const details = (rows, below) => {
  const panel = byId("details");

  const facts = (pairs) => {
    const made = element("dl");
    for (const [name, value] of pairs) {
      if (value === null || value === undefined || value === "") continue;
      const pair = element("div");
      pair.append(element("dt", "", name), element("dd", "", String(value)));
      made.append(pair);
    }
    return made;
  };

  const written = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

  const isRecord = (value) => value !== null && typeof value === "object" && !Array.isArray(value)
    && Object.keys(value).length > 0 && Object.keys(value).length <= MOST_FIELDS;

  // A record field by field, its texts as they are; all else as JSON.
  const shown = (value) => {
    if (!isRecord(value)) return element("pre", "", written(value));
    const made = element("div", "record");
    for (const [key, field] of Object.entries(value)) made.append(element("span", "key", key), element("pre", "", written(field)));
    return made;
  };

  const titled = (title, value) => {
    const head = element("h3", "", title), copy = element("button", "copy", "Copy");
    copy.type = "button";
    copy.addEventListener("click", () => navigator.clipboard?.writeText(written(value)).then(
      () => { copy.textContent = "Copied"; },
      () => { copy.textContent = "Not allowed"; },
    ));
    head.append(copy);
    return head;
  };

  const part = (title, value, className = "") => {
    const made = element("section", className);
    made.append(titled(title, value), shown(value));
    return made;
  };

  const isEmpty = (value) => value === null || value === undefined || (typeof value === "object" && !Object.keys(value).length);

  const turn = (message) => {
    const made = element("div", `turn ${["system", "user", "assistant"].includes(message.role) ? message.role : ""}`);
    made.append(element("h4", "", message.role ?? ""), element("pre", "", written(message.content ?? message)));
    return made;
  };

  const prompt = (row) => {
    const made = element("section");
    made.append(titled("Prompt", row.request.messages), ...(row.request.messages ?? []).map(turn));
    return made;
  };

  const model = (row) => {
    const parts = [];
    if (row.error !== null) parts.push(part("Error", row.error, "error"));
    if (row.request !== null) {
      parts.push(prompt(row));
      for (const [title, key] of [["Parameters", "params"], ["Tools", "tools"]])
        if (!isEmpty(row.request[key])) parts.push(part(title, row.request[key]));
    }
    if (row.reply !== null) {
      if (row.reply.reasoning) parts.push(part("Reasoning", row.reply.reasoning));
      parts.push(part("Reply", row.reply.text ?? ""));
      if (!isEmpty(row.reply.tool_calls)) parts.push(part("Tool calls", row.reply.tool_calls));
    }
    if (row.request !== null && row.request.schema) parts.push(part("Schema of the reply", row.request.schema));
    if (row.request === null) parts.push(element("p", "hint", "Values were not kept in this trace."));
    return parts;
  };

  const call = (row, number) => {
    const parts = [];
    if (row.error !== null) parts.push(part("Error", row.error, "error"));
    if (row.inputs === null) parts.push(element("p", "hint", "Values were not kept in this trace."));
    else parts.push(part("Inputs", row.inputs.length === 1 ? row.inputs[0] : row.inputs));
    if (!isEmpty(row.kwargs)) parts.push(part("Keyword arguments", row.kwargs));
    if (row.inputs !== null && row.error === null && row.elapsed_s !== null) parts.push(part("Outputs", row.outputs));
    if (row.rewards.length) parts.push(part("Rewards", rewards(row.rewards)));
    for (const asked of (below.get(number) ?? []).filter((each) => rows[each].kind === "model").slice(0, MOST_ASKED)) {
      const made = element("section", "asked");
      made.append(element("h2", "", rows[asked].model), ...model(rows[asked]));
      parts.push(made);
    }
    return parts;
  };

  const rewards = (given) => given.map(([path, name, value]) => `${[path, name].filter(Boolean).join(" ")} ${value}`.trim()).join("\n");

  const show = (number) => {
    const row = rows[number], usage = row.usage, of = row.kind === "model" ? model : call;
    const head = element("h2", looksOf(row), nameOf(row));
    const about = facts([
      ["Path", row.path],
      ["Module", row.kind === "module" && row.name !== nameOf(row) ? row.name : ""],
      ["Took", seconds(row.elapsed_s)],
      ["Began", new Date(row.start * 1000).toISOString().replace("T", " ").slice(0, 23)],
      ["Phase", row.phase],
      ["Model calls", row.kind === "module" ? usage.calls || "" : ""],
      ["Tokens", usage.calls ? `${usage.prompt_tokens.toLocaleString("en")} in, ${usage.completion_tokens.toLocaleString("en")} out${usage.estimated ? " (estimated)" : ""}` : ""],
      ["Cost", usage.calls ? dollars(usage.cost_usd) : ""],
      ["Attempts", row.attempts],
      ["Cached", row.cached ? "yes" : ""],
      ["Finish", row.reply?.finish_reason],
      ["Id", row.call_id],
    ]);
    panel.replaceChildren(head, about, ...of(row, number));
    panel.scrollTop = 0;
  };

  panel.append(element("p", "hint", rows.length ? "Choose a call to see all of it." : "No call was recorded."));
  return { show };
};
