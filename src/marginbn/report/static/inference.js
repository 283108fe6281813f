// Exact posteriors of all variables of a network, given states of some of them.
//
// A network is {variables: [{name, states}], parents: [[index]], arities, logTables, groups,
// seenArities}; a log table has one axis per parent in increasing order and the variable itself last.
//
// Children may see the states of a parent in groups, {codes, names}; then the parent's axis is over
// groups. Such a variable is eliminated over its groups, because no child can tell two states of a
// group apart. Its own table then tells how a group divides into states.

import { believe, eliminate, planOrder } from "./elimination.js";
import { collapse, condition, countCells, divide, expand, multiply, sumTo } from "./factors.js";

// The network as it is embedded in the page: tables are one row of 64-bit numbers in base64.
export function readNetwork({ variables, parents, tables, groups }) {
  const arities = variables.map((v) => v.states.length);
  const seenArities = arities.map((arity, i) => groups[i]?.names.length ?? arity);
  const numbers = readNumbers(tables);
  let start = 0;
  const logTables = parents.map((family, i) => {
    const end = start + countCells(family, seenArities) * arities[i];
    const table = numbers.subarray(start, end);
    start = end;
    return table;
  });
  return { variables, parents, arities, logTables, groups, seenArities };
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
  const { arities, groups, seenArities } = network;
  const { tables, factors } = conditionAll(network, evidence, arities.keys());
  const order = planOrder(factors, seenArities);
  const { steps, logTotal } = eliminate(factors, order, seenArities);
  if (logTotal === -Infinity) return { logProbability: -Infinity, posteriors: null };
  const beliefs = believe(steps, seenArities);
  const posteriors = arities.map((arity, i) => {
    if (evidence.has(i)) return certain(evidence.get(i), arity);
    if (!groups[i]) return normalise(sumTo([i], beliefs.get(i), seenArities).values);
    const first = order.find((v) => factors[i].scope.includes(v)); // its belief knows all of them
    const belief = sumTo(factors[i].scope, beliefs.get(first), seenArities);
    return normalise(divideGroups(network, i, divide(belief, factors[i]), tables[i]));
  });
  return { logProbability: logTotal, posteriors };
}

// The tables of some variables where they agree with the evidence; and the same with one entry per
// group of states.
export function conditionAll(network, evidence, variables) {
  const places = [...variables].sort((a, b) => a - b);
  const tables = places.map((i) => conditionTable(network, i, evidence));
  const factors = tables.map((table, place) => {
    const i = places[place];
    return network.groups[i] && !evidence.has(i)
      ? collapse(table, i, network.groups[i].codes, aritiesOfTable(network, i))
      : table;
  });
  return { tables, factors };
}

// log P(state | parents) where all of them are known, given the class.
export function lookUp(network, i, known, label) {
  const states = new Map([...known, [0, label]]);
  return conditionTable(network, i, states).values[0];
}

// The table of a variable where it agrees with the evidence.
function conditionTable(network, i, evidence) {
  const family = network.parents[i];
  const known = new Map();
  for (const p of family) {
    const state = evidence.get(p);
    if (state !== undefined) known.set(p, network.groups[p]?.codes[state] ?? state);
  }
  if (evidence.has(i)) known.set(i, evidence.get(i));
  return condition([...family, i], network.logTables[i], known, aritiesOfTable(network, i));
}

// How long the axes of a table are: groups of the parents, states of the variable itself.
function aritiesOfTable({ arities, groups, seenArities }, i) {
  return groups[i] ? Object.assign([...seenArities], { [i]: arities[i] }) : seenArities;
}

// Log marginal of the states: P(group, parents, evidence) / P(group | parents), which is the ratio,
// times P(state | parents), summed over the parents.
function divideGroups(network, i, ratio, table) {
  const arities = aritiesOfTable(network, i);
  const told = expand(ratio, i, network.groups[i].codes, arities);
  return sumTo([i], multiply([told, table], arities), arities).values;
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
