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

// What to draw of a part of the time, and of one call with all below it where one is chosen.
const within = (rows, part, root, last) => {
  const numbers = [];
  for (let number = Math.max(root, 0); number < rows.length; number += 1) {
    if (root >= 0 && number > root && rows[number].depth <= rows[root].depth) break;
    if (rows[number].start <= part.last && ends(rows[number], last) >= part.first) numbers.push(number);
  }
  return numbers;
};

// A call and all below it are one block; blocks that run at the same time lie under one another. Calls that are not
// drawn take no room; what they have called is then on top.
const laid = (rows, numbers, last) => {
  const height = new Map(), until = new Map(), inside = new Map(), lanes = new Map(), below = new Map([[-1, []]]);
  for (const number of numbers) {
    below.set(number, []);
    below.get(below.has(rows[number].parent) ? rows[number].parent : -1).push(number);
  }
  const packed = (blocks) => {
    const free = [];  // of each lane, when it is free again
    for (const number of blocks) {
      const start = rows[number].start, high = height.get(number);
      let lane = 0, fits = 0;
      while (fits < high && lane < MOST_LANES) {
        if (free[lane + fits] > start) [lane, fits] = [lane + fits + 1, 0];
        else fits += 1;
      }
      for (let each = lane; each < lane + high; each += 1) free[each] = until.get(number);
      inside.set(number, lane);
    }
    return free.length;
  };
  for (const number of [...numbers].reverse()) {  // those below come first
    const blocks = below.get(number);
    height.set(number, 1 + packed(blocks));
    until.set(number, blocks.reduce((latest, each) => Math.max(latest, until.get(each)), ends(rows[number], last)));
  }
  const depth = packed(below.get(-1));
  for (const number of numbers) lanes.set(number, inside.get(number) + (lanes.get(rows[number].parent) ?? -1) + 1);
  return { lanes, depth };
};
