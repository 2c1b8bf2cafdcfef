// The panel beside the tree: all that is known of one call.

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

  const part = (title, value, className = "") => {
    const made = element("section", className);
    made.append(element("h3", "", title), element("pre", "", written(value)));
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
    made.append(element("h3", "", "Prompt"), ...(row.request.messages ?? []).map(turn));
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
    if (row.rewards.length) parts.push(part("Rewards", row.rewards));
    for (const asked of (below.get(number) ?? []).slice(0, 20)) {
      if (rows[asked].kind !== "model") continue;
      const made = element("section", "asked");
      made.append(element("h2", "", rows[asked].model), ...model(rows[asked]));
      parts.push(made);
    }
    return parts;
  };

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
