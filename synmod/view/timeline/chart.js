// The chart on top: all calls in their lanes. Drag to look at a part of the time, click to choose a call.

const chart = (rows, below, span, choose, look) => {
  const canvas = byId("chart"), pen = canvas.getContext("2d");
  const { lanes, depth } = laid(rows, below, span.last);
  const lane = Math.min(14, 190 / Math.max(depth, 1));
  const top = 18, height = top + Math.ceil(lane * depth) + 6;
  let shown = { ...span }, chosen = -1, width = 0, held = null;

  const x = (t) => ((t - shown.first) / (shown.last - shown.first)) * width;
  const time = (at) => shown.first + (at / width) * (shown.last - shown.first);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  const ticks = (ink) => {
    const wide = shown.last - shown.first, rough = wide / Math.max(width / 110, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= rough);
    pen.font = "11px system-ui, sans-serif";
    for (let t = Math.ceil((shown.first - span.first) / step) * step; t <= shown.last - span.first; t += step) {
      const at = Math.round(x(t + span.first)) + 0.5;
      pen.fillStyle = ink.rule;
      pen.fillRect(at, 0, 1, height);
      pen.fillStyle = ink.muted;
      pen.fillText(t === 0 ? "0" : seconds(t), at + 4, 11);
    }
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
    const bar = Math.max(lane - (lane > 3 ? 1.5 : 0), 0.5);
    rows.forEach((row, number) => {
      const from = x(row.start), to = x(ends(row, span.last));
      if (to < 0 || from > width) return;
      const left = Math.max(from, -2), wide = Math.max(Math.min(to, width + 2) - left, 1);
      pen.fillStyle = ink[looksOf(row)];
      pen.globalAlpha = row.elapsed_s === null ? 0.45 : 1;
      pen.fillRect(left, top + lanes[number] * lane, wide, bar);
      pen.globalAlpha = 1;
      if (lane < 12 || wide < 44) return;
      pen.fillStyle = "#ffffff";
      pen.font = "10px system-ui, sans-serif";
      pen.save();
      pen.beginPath();
      pen.rect(left, top + lanes[number] * lane, wide - 4, bar);
      pen.clip();
      pen.fillText(nameOf(row), Math.max(left, 0) + 4, top + lanes[number] * lane + bar - 3);
      pen.restore();
    });
    if (chosen >= 0) {
      const row = rows[chosen], from = x(row.start);
      pen.strokeStyle = ink.ink;
      pen.lineWidth = 1.5;
      pen.strokeRect(from, top + lanes[chosen] * lane - 0.75, Math.max(x(ends(row, span.last)) - from, 2), bar + 1.5);
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
    const wanted = (event.clientY - canvas.getBoundingClientRect().top - top) / lane, place = at(event);
    const slack = Math.max(1, 2 / lane);
    let best = -1, nearest = Infinity;
    rows.forEach((row, number) => {
      const off = Math.abs(lanes[number] + 0.5 - wanted);
      const inside = x(row.start) - 3 <= place && place <= x(ends(row, span.last)) + 3;
      if (inside && off < Math.min(slack, nearest)) [best, nearest] = [number, off];
    });
    return best;
  };

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    held = { from: at(event), to: at(event) };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (held === null) return;
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
  canvas.addEventListener("dblclick", () => look({ ...span }));

  return {
    draw,
    look: (part) => { shown = part; draw(); },
    choose: (number) => { chosen = number; draw(); },
  };
};
