// Why one class rather than another: the log margin as a sum with one term per variable.
//
// The terms are those of the library (marginbn.network.explain): a feature whose parents are known
// adds log P(x | parents, c) - log P(x | parents, c'). Where a parent is not known it is summed out,
// given what is known of the variables before: the term is the change of log P(c, known) when the
// feature becomes known, minus the same for c'. All terms together are the log margin.

import { eliminate, planOrder } from "./elimination.js";
import { sumTo } from "./factors.js";
import { conditionAll, lookUp } from "./inference.js";

// log P(c, evidence) of every class; what the evidence says of the class itself is ignored.
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

// Variables and all their ancestors: nothing else has a say in their probability.
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

// The most probable class and its nearest rival; ties go to the first.
export function rivals(values) {
  const order = [...values.keys()].sort((a, b) => values[b] - values[a] || a - b);
  return order.slice(0, 2);
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

// The terms of the evidence for one class against another: [{variable, value}], the class first,
// then the features that are known, the largest first.
export function explainCase(network, evidence, label, rival) {
  const known = new Map([...evidence].filter(([variable]) => variable !== 0));
  const order = topologicalOrder(network.parents);
  const terms = order
    .filter((v) => v === 0 || known.has(v))
    .map((v) => ({ variable: v, value: termOf(network, known, order, v, label, rival) }));
  const [own, others] = [terms.filter((t) => t.variable === 0), terms.filter((t) => t.variable !== 0)];
  others.sort((a, b) => Math.abs(b.value) - Math.abs(a.value) || a.variable - b.variable);
  return [...own, ...others];
}

function termOf(network, known, order, variable, label, rival) {
  const family = network.parents[variable];
  if (family.every((p) => p === 0 || known.has(p))) {
    if (variable !== 0 && !family.includes(0)) return 0;
    return lookUp(network, variable, known, label) - lookUp(network, variable, known, rival);
  }
  const place = order.indexOf(variable);
  if (place < order.indexOf(0)) return 0;
  const earlier = order.slice(0, place).filter((v) => known.has(v));
  const before = margin(network, new Map(earlier.map((v) => [v, known.get(v)])), label, rival);
  if (variable === 0) return before;
  const now = [...earlier, variable].map((v) => [v, known.get(v)]);
  return margin(network, new Map(now), label, rival) - before;
}

function margin(network, evidence, label, rival) {
  const values = logJoint(network, evidence);
  return values[label] - values[rival];
}
