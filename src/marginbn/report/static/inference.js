// Exact posteriors of all variables of a network, given states of some of them.
//
// A network is {variables: [{name, states}], parents: [[index]], arities, logTables, groups}; a log
// table has one axis per parent in increasing order and the variable itself last.
//
// Children may see the states of a parent in groups, {codes, names}: then the parent's axis is over
// groups. For inference the group is one more variable, numbered after all others, that follows
// from its state; seenAs tells under which number children know a variable.

import { eliminate, marginalise, planOrder } from "./elimination.js";
import { condition, countCells } from "./factors.js";

// The network as it is embedded in the page: tables are one row of 64-bit numbers in base64.
export function readNetwork({ variables, parents, tables, groups }) {
  const arities = variables.map((v) => v.states.length);
  const seenAs = groups.map((group, i) => (group ? arities.push(group.names.length) - 1 : i));
  const numbers = readNumbers(tables);
  let start = 0;
  const logTables = parents.map((family, i) => {
    const end = start + countCells([...family.map((p) => seenAs[p]), i], arities);
    const table = numbers.subarray(start, end);
    start = end;
    return table;
  });
  return { variables, parents, arities, logTables, groups, seenAs };
}

function readNumbers(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const numbers = new Float64Array(bytes.length / 8);
  return numbers.map((_, i) => view.getFloat64(8 * i, true));
}

// Posteriors given the evidence, a Map from variable to state; what is not in it is summed out.
//
// Returns the log probability of the evidence and one array per variable; the arrays are null where
// the evidence has probability zero. Throws TooLargeError where the products would be too large.
export function infer(network, evidence) {
  const { arities, variables } = network;
  const factors = buildFactors(network, withGroups(network, evidence));
  const order = planOrder(factors, arities);
  const { steps, logTotal } = eliminate(factors, order, arities);
  if (logTotal === -Infinity) return { logProbability: -Infinity, posteriors: null };
  const marginals = marginalise(steps, arities);
  const posteriors = variables.map((_, i) =>
    evidence.has(i) ? certain(evidence.get(i), arities[i]) : normalise(marginals.get(i)),
  );
  return { logProbability: logTotal, posteriors };
}

// The evidence with the groups of the states in it.
function withGroups({ groups, seenAs }, evidence) {
  const known = new Map(evidence);
  for (const [i, state] of evidence) if (groups[i]) known.set(seenAs[i], groups[i].codes[state]);
  return known;
}

// All tables where they agree with the evidence, and what ties open variables to their groups.
function buildFactors({ arities, groups, logTables, parents, seenAs }, known) {
  const tables = parents.map((family, i) =>
    condition([...family.map((p) => seenAs[p]), i], logTables[i], known, arities),
  );
  const open = groups.flatMap((group, i) => (group && !known.has(i) ? [i] : []));
  return [...tables, ...open.map((i) => tie(i, seenAs[i], groups[i].codes, arities))];
}

// One where the group is that of the state, else zero.
function tie(variable, seen, codes, arities) {
  const values = new Float64Array(codes.length * arities[seen]).fill(-Infinity);
  codes.forEach((group, state) => {
    values[state * arities[seen] + group] = 0;
  });
  return { scope: [variable, seen], values };
}

function certain(state, arity) {
  const posterior = new Float64Array(arity);
  posterior[state] = 1;
  return posterior;
}

function normalise(logValues) {
  const peak = logValues.reduce((a, b) => Math.max(a, b));
  const values = logValues.map((value) => Math.exp(value - peak));
  const total = values.reduce((a, b) => a + b);
  return values.map((value) => value / total);
}
