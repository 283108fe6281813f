// Exact posteriors of all variables of a network, given states of some of them.
//
// A network is {variables: [{name, states}], parents: [[index]], arities, logTables}; a log table has
// one axis per parent in increasing order and the variable itself last.

import { believe, eliminate, planOrder } from "./elimination.js";
import { condition, countCells, sumTo } from "./factors.js";

// The network as it is embedded in the page: tables are one row of 64-bit numbers in base64.
export function readNetwork({ variables, parents, tables }) {
  const arities = variables.map((v) => v.states.length);
  const numbers = readNumbers(tables);
  let start = 0;
  const logTables = parents.map((family, i) => {
    const end = start + countCells([...family, i], arities);
    const table = numbers.subarray(start, end);
    start = end;
    return table;
  });
  return { variables, parents, arities, logTables };
}

// 64-bit numbers in base64.
export function readNumbers(base64) {
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
  const { arities } = network;
  const factors = conditionAll(network, evidence, arities.keys());
  const { steps, logTotal } = eliminate(factors, planOrder(factors, arities), arities);
  if (logTotal === -Infinity) return { logProbability: -Infinity, posteriors: null };
  const beliefs = believe(steps, arities);
  const posteriors = arities.map((arity, i) =>
    evidence.has(i)
      ? certain(evidence.get(i), arity)
      : normalise(sumTo([i], beliefs.get(i), arities).values),
  );
  return { logProbability: logTotal, posteriors };
}

// The tables of some variables where they agree with the evidence.
export function conditionAll(network, evidence, variables) {
  return [...variables].sort((a, b) => a - b).map((i) => conditionTable(network, i, evidence));
}

// log P(state | parents) where all of them are known, given the class.
export function lookUp(network, i, known, label) {
  const states = new Map([...known, [0, label]]);
  return conditionTable(network, i, states).values[0];
}

// The table of a variable where it agrees with the evidence.
function conditionTable({ parents, logTables, arities }, i, evidence) {
  return condition([...parents[i], i], logTables[i], evidence, arities);
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
