// P(class | what is known) of a trained classifier, the same numbers as marginbn.class_model.answers.
//
// A case has one code per feature: a cell, the number of cells for unknown, or one more than that plus
// a bin where only the bin is known. The counted network is a tree of buckets with flat tables (see
// marginbn.class_model.kernels.evidence). Messages go up and give G, the posterior of the network. 64
// fixed draws of what is unknown come down and give E, the mean posterior of the class model. With k
// of d features known the answer is proportional to G^(1-u) E^u with u = (k - 1) / (d - 1).

import { readNumbers } from "./inference.js";

const TINY = 1e-300; // in place of zero, where a quotient or a logarithm needs one
const N_ORDERS = 8; // orders of the known features, each with its reverse, that contributions average
const [SEED, MULTIPLIER, MODULUS] = [20120627, 48271, 2147483647];

// The model as it is embedded in the page; long rows of numbers are 64-bit, in base64.
export function readModel(values) {
  const { draws, buckets } = values;
  const model = { ...values, tables: readNumbers(values.tables) };
  model.buckets = { ...buckets, tables: readNumbers(buckets.tables), reach: readNumbers(buckets.reach) };
  model.points = shuffles(draws, values.cuts.length + 1).map((order) => order.map((q) => (q + 0.5) / draws));
  return model;
}

// Shuffles of 0..n-1 by a Lehmer generator; products stay below 2^53.
function shuffles(n, count) {
  let state = SEED;
  return Array.from({ length: count }, () => {
    const order = Array.from({ length: n }, (_, k) => k);
    for (let k = n - 1; k > 0; k--) {
      state = (state * MULTIPLIER) % MODULUS;
      const other = state % (k + 1);
      [order[k], order[other]] = [order[other], order[k]];
    }
    return order;
  });
}

const sizeOf = ({ cellStart }, i) => cellStart[i + 1] - cellStart[i];

// Codes of a case: typed numbers have a cell, chosen states a bin, everything else is unknown.
// Both maps have variables for keys, the class is 0 and ignored.
export function codesOf(model, evidence, typed) {
  return model.cuts.map((cuts, i) => {
    const cells = sizeOf(model.buckets, i);
    if (!evidence.has(i + 1)) return cells;
    const number = typed.has(i + 1) ? Number(typed.get(i + 1)) : NaN;
    if (cuts && !Number.isNaN(number)) return cuts.filter((cut) => cut < number).length;
    return codeOfBin(model.buckets, i, evidence.get(i + 1));
  });
}

// A bin of a single cell is that cell.
function codeOfBin({ cellStart, firstCell, binStart }, i, bin) {
  const [first, stop] = [firstCell[binStart[i] + bin], firstCell[binStart[i] + bin + 1]];
  return stop - first === 1 ? first : cellStart[i + 1] - cellStart[i] + 1 + bin;
}

// The posterior of the class.
export function answerCase(model, codes) {
  const { buckets } = model;
  const n = codes.length;
  const cells = [...codes];
  const state = new Array(n).fill(0);
  const known = new Array(n).fill(false); // its bin
  const drawn = new Array(n).fill(false); // its cell
  let [live, count] = [0, 0];
  for (let i = 0; i < n; i++) {
    const size = sizeOf(buckets, i);
    known[i] = codes[i] !== size;
    drawn[i] = codes[i] >= size;
    if (known[i]) state[i] = drawn[i] ? codes[i] - size - 1 : buckets.binOf[buckets.cellStart[i] + codes[i]];
    if (size > 1) {
      live += 1;
      count += known[i] ? 1 : 0;
    }
  }
  if (!drawn.some((open, i) => open && sizeOf(buckets, i) > 1)) return modelPosterior(model, cells);
  const sums = new Float64Array(buckets.tables.length);
  const network = askNetwork(buckets, known, state, sums);
  if (count <= 1) return network;
  const draws = askDraws(model, cells, drawn, state, sums, network);
  return blend(network, draws, (count - 1) / (live - 1));
}

function rowOf({ prior, tableStart, above, strides, aboveStart }, i, c, state) {
  const start = tableStart[i];
  let place = start + c * ((tableStart[i + 1] - start) / prior.length);
  for (let k = aboveStart[i]; k < aboveStart[i + 1]; k++) place += state[above[k]] * strides[k];
  return place;
}

function nextState({ nBins, above, aboveStart }, i, known, state) {
  for (let k = aboveStart[i]; k < aboveStart[i + 1]; k++) {
    const v = above[k];
    if (known[v]) continue;
    state[v] += 1;
    if (state[v] < nBins[v]) return true;
    state[v] = 0;
  }
  return false;
}

// Running sums of a bucket over its bins; the last one of a row is its message.
function send(buckets, i, known, state, sums) {
  const { prior, nBins, tables, below, belowStart, above, aboveStart } = buckets;
  const own = state[i];
  let largest = 0;
  for (let k = aboveStart[i]; k < aboveStart[i + 1]; k++) if (!known[above[k]]) state[above[k]] = 0;
  do {
    for (let c = 0; c < prior.length; c++) {
      const place = rowOf(buckets, i, c, state);
      let total = 0;
      for (let x = 0; x < nBins[i]; x++) {
        if (!known[i] || x === own) {
          state[i] = x;
          let value = tables[place + x];
          for (let k = belowStart[i]; k < belowStart[i + 1]; k++) {
            const j = below[k];
            value *= sums[rowOf(buckets, j, c, state) + nBins[j] - 1];
          }
          total += value;
        }
        sums[place + x] = total;
      }
      largest = Math.max(largest, total);
    }
  } while (nextState(buckets, i, known, state));
  state[i] = own;
  if (largest === 0) return;
  const scale = 1 / largest;
  do {
    for (let c = 0; c < prior.length; c++) {
      const place = rowOf(buckets, i, c, state);
      for (let x = 0; x < nBins[i]; x++) sums[place + x] *= scale;
    }
  } while (nextState(buckets, i, known, state));
}

function askNetwork(buckets, known, state, sums) {
  let posterior = Float64Array.from(buckets.prior);
  for (const i of [...buckets.order].reverse()) {
    send(buckets, i, known, state, sums);
    if (buckets.aboveStart[i] < buckets.aboveStart[i + 1]) continue;
    posterior = scaled(posterior.map((p, c) => p * sums[rowOf(buckets, i, c, state) + buckets.nBins[i] - 1]));
  }
  return posterior;
}

function scaled(shares) {
  const total = shares.reduce((a, b) => a + b, 0);
  return shares.map((share) => share / total);
}

function pickSum(sums, start, n, target) {
  for (let k = 0; k < n - 1; k++) if (sums[start + k] > target) return k;
  return n - 1;
}

function drawCell({ nBins, firstCell, binStart, cellStart, reach }, i, place, sums, point) {
  const n = nBins[i];
  const target = point * sums[place + n - 1];
  const x = pickSum(sums, place, n, target);
  const before = x > 0 ? sums[place + x - 1] : 0;
  const rest = (target - before) / Math.max(sums[place + x] - before, TINY);
  const [first, stop] = [firstCell[binStart[i] + x], firstCell[binStart[i] + x + 1]];
  return first + pickSum(reach, cellStart[i] + first, stop - first, rest);
}

// Scores of all classes; the first of two has no tables.
function scoresOf({ layout, tables, offset }, cells) {
  const { features, sides, cellOf, cellStart, rows, firstEntry } = layout;
  const scores = Float64Array.from(offset);
  const entries = firstEntry.at(-1);
  const first = offset.length - tables.length / entries;
  features.forEach(([i, j], t) => {
    const [side, other] = sides[t];
    const x = cellOf[cellStart[side] + cells[i]];
    const y = cellOf[cellStart[other] + cells[j]];
    const entry = firstEntry[t] + x * rows[other] + y;
    for (let k = first; k < scores.length; k++) scores[k] += tables[(k - first) * entries + entry];
  });
  return scores;
}

// The class model's posterior of a complete case.
function modelPosterior(model, cells) {
  const scores = scoresOf(model, cells);
  const peak = Math.max(...scores);
  return scaled(scores.map((score) => Math.exp(score - peak)));
}

function askDraws(model, cells, drawn, state, sums, network) {
  const { buckets, points } = model;
  const posterior = new Float64Array(network.length);
  const reached = [];
  network.forEach((p, c) => reached.push(p + (reached[c - 1] ?? 0)));
  for (let m = 0; m < points[0].length; m++) {
    const c = pickSum(reached, 0, reached.length, points[0][m] * reached.at(-1));
    for (const i of buckets.order) {
      if (!drawn[i]) continue;
      cells[i] = drawCell(buckets, i, rowOf(buckets, i, c, state), sums, points[1 + i][m]);
      state[i] = buckets.binOf[buckets.cellStart[i] + cells[i]];
    }
    modelPosterior(model, cells).forEach((p, k) => (posterior[k] += p));
  }
  return scaled(posterior);
}

function blend(network, draws, weight) {
  const logs = network.map(
    (p, c) => (1 - weight) * Math.log(Math.max(p, TINY)) + weight * Math.log(Math.max(draws[c], TINY)),
  );
  const peak = Math.max(...logs);
  return scaled(logs.map((value) => Math.exp(value - peak)));
}

// Logs of the answer with nothing known, and what each feature adds to them, both by class: the mean
// change when it becomes known, over fixed orders of the known features and their reverses.
export function contribute(model, codes) {
  const unknown = codes.map((_, i) => sizeOf(model.buckets, i));
  const known = codes.flatMap((code, i) => (code === unknown[i] ? [] : [i]));
  const orders = shuffles(known.length, N_ORDERS).flatMap((order) => [order, [...order].reverse()]);
  const base = answerCase(model, unknown).map(safeLog);
  const added = codes.map(() => new Float64Array(base.length));
  const memo = new Map(); // orders share their ends
  for (const order of orders) {
    const now = [...unknown];
    let before = base;
    for (const place of order) {
      const feature = known[place];
      now[feature] = codes[feature];
      const key = now.join();
      if (!memo.has(key)) memo.set(key, answerCase(model, now).map(safeLog));
      const logs = memo.get(key);
      logs.forEach((value, c) => (added[feature][c] += (value - before[c]) / orders.length));
      before = logs;
    }
  }
  return { base, added };
}

function safeLog(probability) {
  return Math.log(Math.max(probability, TINY));
}
