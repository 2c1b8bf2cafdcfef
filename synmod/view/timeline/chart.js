// The chart on top: calls in their lanes. Drag to look at a part of the time, click to choose a call.

const TOP = 18, HIGHEST_LANE = 15, LEAST_ROOM = 190;

const chart = (rows, span, choose, look) => {
  const canvas = byId("chart"), pen = canvas.getContext("2d");
  let shown = { ...span }, numbers = [], lanes = new Map(), lane = HIGHEST_LANE, height = 0;
  let chosen = -1, width = 0, held = null, kept = null;

  const x = (t) => ((t - shown.first) / (shown.last - shown.first)) * width;
  const y = (number) => TOP + lanes.get(number) * lane;
  const time = (at) => shown.first + (at / width) * (shown.last - shown.first);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  const arrange = (root) => {
    numbers = within(rows, shown, root, span.last);
    const all = laid(rows, numbers, span.last);
    lanes = all.lanes;
    lane = Math.min(HIGHEST_LANE, Math.max(LEAST_ROOM, window.innerHeight * 0.3) / Math.max(all.depth, 1));
    height = TOP + Math.ceil(lane * all.depth) + 6;
  };

  const ticks = (ink) => {
    const wide = shown.last - shown.first, rough = wide / Math.max(width / 110, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= rough);
    pen.font = "11px system-ui, sans-serif";
    for (let t = Math.ceil((shown.first - span.first) / step) * step; t <= shown.last - span.first; t += step) {
      const at = Math.round(x(t + span.first)) + 0.5, told = t === 0 ? "0" : seconds(t);
      pen.fillStyle = ink.rule;
      pen.fillRect(at, 0, 1, height);
      pen.fillStyle = ink.muted;
      if (at + 4 + pen.measureText(told).width < width) pen.fillText(told, at + 4, 11);
    }
  };

  const bar = (number, thick, ink) => {
    const row = rows[number], from = x(row.start), to = x(ends(row, span.last));
    if (to < 0 || from > width) return;
    const left = Math.max(from, -2), wide = Math.max(Math.min(to, width + 2) - left, 1);
    pen.fillStyle = ink[looksOf(row)];
    pen.globalAlpha = (row.elapsed_s === null ? 0.45 : 1) * (kept === null || kept.has(number) ? 1 : 0.18);
    pen.fillRect(left, y(number), wide, thick);
    pen.globalAlpha = 1;
    if (lane < 11 || wide < 44) return;
    pen.fillStyle = "#ffffff";
    pen.font = "10px system-ui, sans-serif";
    pen.save();
    pen.beginPath();
    pen.rect(left, y(number), wide - 4, thick);
    pen.clip();
    pen.fillText(nameOf(row), Math.max(left, 0) + 4, y(number) + thick / 2 + 3.5);
    pen.restore();
  };

  const draw = () => {
    const scale = window.devicePixelRatio || 1;
    width = canvas.clientWidth;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.height = `${height}px`;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    const ink = Object.fromEntries(["rule", "muted", "module", "model", "failed", "ink"].map((n) => [n, colour(n)]));
    ticks(ink);
    const thick = Math.max(lane - (lane > 3 ? 1.5 : 0), 0.5);
    for (const number of numbers) bar(number, thick, ink);
    if (lanes.has(chosen)) {
      const row = rows[chosen], from = x(row.start);
      pen.strokeStyle = ink.ink;
      pen.lineWidth = 1.5;
      pen.strokeRect(from, y(chosen) - 0.75, Math.max(x(ends(row, span.last)) - from, 2), thick + 1.5);
    }
    if (held !== null && Math.abs(held.to - held.from) > 3) {
      pen.fillStyle = ink.ink;
      pen.globalAlpha = 0.12;
      pen.fillRect(Math.min(held.from, held.to), 0, Math.abs(held.to - held.from), height);
      pen.globalAlpha = 1;
    }
  };

  const at = (event) => Math.max(0, Math.min(width, event.clientX - canvas.getBoundingClientRect().left));

  const under = (event) => {
    const wanted = (event.clientY - canvas.getBoundingClientRect().top - TOP) / lane, place = at(event);
    const slack = Math.max(0.5, 2 / lane);
    let best = -1, nearest = Infinity;
    for (const number of numbers) {
      const off = Math.abs(lanes.get(number) + 0.5 - wanted);
      const inside = x(rows[number].start) - 3 <= place && place <= x(ends(rows[number], span.last)) + 3;
      if (inside && off <= Math.min(slack, nearest)) [best, nearest] = [number, off];
    }
    return best;
  };

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    held = { from: at(event), to: at(event) };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (held === null) {
      const over = under(event);
      canvas.title = over < 0 ? "" : briefly(rows[over]);
      canvas.classList.toggle("over", over >= 0);
      return;
    }
    held.to = at(event);
    draw();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (held === null) return;
    const [from, to] = [Math.min(held.from, held.to), Math.max(held.from, held.to)];
    held = null;
    if (to - from > 3) look({ first: time(from), last: time(to) });
    else if (under(event) >= 0) choose(under(event));
    draw();
  });
  canvas.addEventListener("dblclick", (event) => {
    const over = under(event);
    if (over >= 0) look(null, over);
    else look(null);
  });

  return {
    draw,
    look: (part, root) => { shown = part; arrange(root); draw(); },
    keep: (found) => { kept = found; draw(); },
    choose: (number) => { chosen = number; draw(); },
  };
};
