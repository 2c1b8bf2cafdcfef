// Lanes: what runs at the same time lies side by side, each call somewhere below the one that made it.

const MOST_LANES = 10000;  // what is more than so many at once lies over one another

const ends = (row, last) => (row.elapsed_s === null ? last : row.start + row.elapsed_s);

const belowOf = (rows) => {
  const below = new Map();
  rows.forEach((row, number) => {
    if (!below.has(row.parent)) below.set(row.parent, []);
    below.get(row.parent).push(number);
  });
  return below;
};

const measured = (rows) => {
  let first = Infinity, last = -Infinity;
  for (const row of rows) {
    first = Math.min(first, row.start);
    last = Math.max(last, row.start + (row.elapsed_s ?? 0));
  }
  return rows.length ? { first, last: Math.max(last, first + 1e-6) } : { first: 0, last: 1 };
};

// A call and all below it are one block; blocks that run at the same time lie under one another.
const laid = (rows, below, last) => {
  const height = new Int32Array(rows.length), until = new Float64Array(rows.length);
  const within = new Int32Array(rows.length), lanes = new Int32Array(rows.length);
  const packed = (blocks) => {
    const free = [];  // of each lane, when it is free again
    for (const number of blocks) {
      const start = rows[number].start, high = height[number];
      let lane = 0, fits = 0;
      while (fits < high && lane < MOST_LANES) {
        if (free[lane + fits] > start) [lane, fits] = [lane + fits + 1, 0];
        else fits += 1;
      }
      for (let each = lane; each < lane + high; each += 1) free[each] = until[number];
      within[number] = lane;
    }
    return free.length;
  };
  for (let number = rows.length - 1; number >= 0; number -= 1) {  // those below come first
    const blocks = below.get(number) ?? [];
    height[number] = 1 + packed(blocks);
    until[number] = blocks.reduce((latest, each) => Math.max(latest, until[each]), ends(rows[number], last));
  }
  const depth = packed(below.get(-1) ?? []);
  rows.forEach((row, number) => {
    lanes[number] = within[number] + (row.parent < 0 ? 0 : lanes[row.parent] + 1);
  });
  return { lanes, depth };
};
