// Why a counted network answers as it does: log P(c, known) as a sum, from log P(c) on, with one term
// per known feature.
//
// A feature whose parents are known adds log P(x | parents, c). Where a parent is not known, or where
// the class is a descendant, the term is the change of log P(c, known) when the feature becomes known
// after the variables before it. Where the class has no parents, the terms are those of the library
// (marginbn.network.explain).

import { eliminate, planOrder } from "./elimination.js";
import { sumTo } from "./factors.js";
import { conditionAll, lookUp } from "./inference.js";

// log P(c, evidence) of every class; evidence on the class itself is ignored.
export function logJoint(network, evidence) {
  const known = new Map([...evidence].filter(([variable]) => variable !== 0));
  const needed = ancestors(network, [0, ...known.keys()]);
  const factors = conditionAll(network, known, needed);
  const order = planOrder(factors, network.arities).filter((v) => v !== 0);
  const { remaining } = eliminate(factors, order, network.arities);
  const values = new Float64Array(network.arities[0]);
  for (const factor of remaining) {
    const { values: own } = sumTo(factor.scope, factor, network.arities);
    values.forEach((_, c) => (values[c] += own.length > 1 ? own[c] : own[0]));
  }
  return values;
}

// Variables and all their ancestors: nothing else changes their probability.
function ancestors(network, variables) {
  const found = new Set();
  const waiting = [...variables];
  while (waiting.length > 0) {
    const variable = waiting.pop();
    if (found.has(variable)) continue;
    found.add(variable);
    waiting.push(...network.parents[variable]);
  }
  return found;
}

// Every variable before its children, ties by index.
export function topologicalOrder(parents) {
  const placed = new Set();
  const order = [];
  while (order.length < parents.length) {
    const next = parents.findIndex(
      (family, v) => !placed.has(v) && family.every((p) => placed.has(p)),
    );
    placed.add(next);
    order.push(next);
  }
  return order;
}

// The terms of the evidence, [{variable, values}] with a value for every class: that of the class
// itself first, then those of the features that are known.
export function explainCase(network, evidence) {
  const known = new Map([...evidence].filter(([variable]) => variable !== 0));
  const order = topologicalOrder(network.parents);
  return [0, ...known.keys()].map((variable) => ({
    variable,
    values: termOf(network, known, order, variable),
  }));
}

function termOf(network, known, order, variable) {
  if (variable === 0) return [...logJoint(network, new Map())];
  const classes = [...Array(network.arities[0]).keys()];
  const place = order.indexOf(variable);
  const isBelow = place > order.indexOf(0);
  if (isBelow && network.parents[variable].every((p) => p === 0 || known.has(p))) {
    return classes.map((c) => lookUp(network, variable, known, c));
  }
  const earlier = order.slice(0, place).filter((v) => known.has(v));
  const joint = (variables) => logJoint(network, new Map(variables.map((v) => [v, known.get(v)])));
  const [before, after] = [joint(earlier), joint([...earlier, variable])];
  return classes.map((c) => (after[c] === before[c] ? 0 : after[c] - before[c])); // of infinities too
}
