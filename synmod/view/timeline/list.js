// The tree of the calls, a line each with its bar. Only the lines in sight are there.

const LINE = 28, HEADS = 26;

const list = (rows, span, choose) => {
  const box = byId("calls"), space = byId("space"), layer = byId("rows");
  const parents = new Set(rows.map((row) => row.parent));
  const folded = new Set();
  let shown = { ...span }, kept = null, visible = [], place = new Map(), chosen = -1, waiting = false;

  const arrange = () => {
    visible = [];
    let below = Infinity;  // the depth under which a folded call hides everything
    rows.forEach((row, number) => {
      if (row.depth > below) return;
      below = Infinity;
      if (kept !== null && !kept.has(number)) return;
      visible.push(number);
      if (folded.has(number)) below = row.depth;
    });
    place = new Map(visible.map((number, index) => [number, index]));
    space.style.height = `${visible.length * LINE}px`;
    draw();
  };

  const bar = (row) => {
    const wide = shown.last - shown.first, track = element("span", "track"), made = element("i", looksOf(row));
    const percent = (t) => ((t - shown.first) / wide) * 100;
    const from = percent(row.start), to = percent(ends(row, span.last));
    if (to >= 0 && from <= 100) {
      made.style.left = `${Math.max(from, 0)}%`;
      made.style.width = `${Math.max(Math.min(to, 100) - Math.max(from, 0), 0)}%`;
      if (row.elapsed_s === null) made.classList.add("running");
      track.append(made);
    }
    return track;
  };

  const tags = (row) => [
    row.phase === "inference" ? "" : row.phase,
    row.cached ? "cached" : "",
    row.attempts > 1 ? `${row.attempts} attempts` : "",
  ].filter(Boolean);

  const line = (number) => {
    const row = rows[number], made = element("div", "call");
    made.id = `call-${number}`;
    made.dataset.number = number;
    made.setAttribute("role", "treeitem");
    made.setAttribute("aria-level", row.depth + 1);
    made.setAttribute("aria-selected", number === chosen);
    if (kept !== null && !kept.get(number)) made.classList.add("around");
    const name = element("span", "name");
    name.style.paddingLeft = `${Math.min(row.depth, 24) * 14 + 6}px`;
    const fold = element("span", "fold", parents.has(number) ? (folded.has(number) ? "▸" : "▾") : "");
    if (parents.has(number)) made.setAttribute("aria-expanded", !folded.has(number));
    const label = element("span", "label", nameOf(row));
    label.title = row.path ?? row.model;
    name.append(fold, element("span", `dot ${looksOf(row)}`), label);
    for (const told of tags(row)) name.append(element("span", "tag", told));
    if (row.error !== null) name.append(element("span", "why", row.error.slice(0, 200)));
    const tokens = tokensOf(row.usage), cost = row.usage.cost_usd;
    made.append(
      name,
      element("span", "figure", tokens ? tokens.toLocaleString("en") : ""),
      element("span", "figure cost", cost ? dollars(cost) : ""),
      element("span", "figure", seconds(row.elapsed_s)),
      bar(row),
    );
    return made;
  };

  const draw = () => {
    const first = Math.max(0, Math.floor(box.scrollTop / LINE) - 8);
    const last = Math.min(visible.length, Math.ceil((box.scrollTop + box.clientHeight) / LINE) + 8);
    layer.style.transform = `translateY(${first * LINE}px)`;
    layer.replaceChildren(...visible.slice(first, last).map(line));
    if (chosen >= 0) box.setAttribute("aria-activedescendant", `call-${chosen}`);
  };

  const open = (number) => {
    for (let above = rows[number].parent; above >= 0; above = rows[above].parent) folded.delete(above);
    if (!place.has(number)) arrange();
  };

  const show = (number) => {
    const at = (place.get(number) ?? 0) * LINE;
    if (at < box.scrollTop) box.scrollTop = at;
    const low = at + LINE + HEADS - box.clientHeight;
    if (low > box.scrollTop) box.scrollTop = low;
  };

  const toggle = (number, close = !folded.has(number)) => {
    if (!parents.has(number)) return;
    if (close) folded.add(number);
    else folded.delete(number);
    arrange();
  };

  const step = (by) => {
    const index = place.has(chosen) ? place.get(chosen) + by : 0;
    if (visible[index] !== undefined) choose(visible[index]);
  };

  box.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  });
  box.addEventListener("click", (event) => {
    const hit = event.target.closest(".call");
    if (hit === null) return;
    if (event.target.classList.contains("fold")) toggle(Number(hit.dataset.number));
    else choose(Number(hit.dataset.number));
  });
  box.addEventListener("dblclick", (event) => {
    const hit = event.target.closest(".call");
    if (hit !== null) toggle(Number(hit.dataset.number));
  });
  box.addEventListener("keydown", (event) => {
    const keys = {
      ArrowDown: () => step(1),
      ArrowUp: () => step(-1),
      PageDown: () => step(20),
      PageUp: () => step(-20),
      ArrowLeft: () => (parents.has(chosen) && !folded.has(chosen) ? toggle(chosen, true)
        : rows[chosen]?.parent >= 0 && choose(rows[chosen].parent)),
      ArrowRight: () => toggle(chosen, false),
    };
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });

  box.classList.toggle("priced", rows.some((row) => row.usage.cost_usd));

  return {
    arrange,
    draw,
    next: (is, by) => {  // the next line in sight of which something holds, round and round
      const many = visible.length, from = place.get(chosen) ?? (by > 0 ? -1 : 0);
      for (let off = 1; off <= many; off += 1) {
        const number = visible[(from + by * off + many * (off + 1)) % many];
        if (is(number)) return choose(number);
      }
      return undefined;
    },
    look: (part) => { shown = part; draw(); },
    keep: (numbers) => { kept = numbers; box.scrollTop = 0; arrange(); },
    choose: (number) => { chosen = number; open(number); show(number); draw(); },
    foldAll: (close) => {
      folded.clear();
      if (close) parents.forEach((number) => number >= 0 && folded.add(number));
      arrange();
    },
  };
};
