// Variable elimination, forth for the probability of the evidence and back for all marginals.
//
// To eliminate a variable means: multiply the factors that mention it and sum it out. Every order
// gives the same answer; the order only decides how large the products become.

import { countCells, divide, multiply, sumTo } from "./factors.js";

// All products together may have so many cells; beyond that a page would stall.
export const MOST_CELLS = 2 ** 24;

export class TooLargeError extends Error {}

// Greedy order: always the variable with the smallest product, ties by index.
export function planOrder(factors, arities) {
  const neighbours = joinNeighbours(factors);
  const order = [];
  let total = 0;
  while (neighbours.size > 0) {
    const [variable, cells] = cheapest(neighbours, arities);
    total += cells;
    if (total > MOST_CELLS) throw new TooLargeError();
    order.push(variable);
    remove(variable, neighbours);
  }
  return order;
}

// Variables are neighbours when some factor mentions both.
function joinNeighbours(factors) {
  const neighbours = new Map();
  for (const { scope } of factors) {
    for (const variable of scope) {
      if (!neighbours.has(variable)) neighbours.set(variable, new Set());
      for (const other of scope) if (other !== variable) neighbours.get(variable).add(other);
    }
  }
  return neighbours;
}

function cheapest(neighbours, arities) {
  let best = [-1, Infinity];
  for (const [variable, around] of neighbours) {
    const cells = arities[variable] * countCells([...around], arities);
    if (cells < best[1] || (cells === best[1] && variable < best[0])) best = [variable, cells];
  }
  if (best[0] < 0) throw new TooLargeError(); // every product is beyond the largest number
  return best;
}

// What is left of a variable joins all its neighbours.
function remove(variable, neighbours) {
  const around = neighbours.get(variable);
  neighbours.delete(variable);
  for (const one of around) {
    neighbours.get(one).delete(variable);
    for (const other of around) if (other !== one) neighbours.get(one).add(other);
  }
}

// Eliminate in the given order. Returns the steps, the factors that are left, and the log of the
// whole sum where nothing but constants is left.
export function eliminate(factors, order, arities) {
  const steps = [];
  let remaining = factors;
  for (const variable of order) {
    const mentioning = remaining.filter((f) => f.scope.includes(variable));
    const product = multiply(mentioning, arities);
    const scope = product.scope.filter((v) => v !== variable);
    const message = sumTo(scope, product, arities);
    remaining = remaining.filter((f) => !f.scope.includes(variable));
    remaining.push(message);
    steps.push({ variable, product, message });
  }
  return { steps, remaining, logTotal: multiply(remaining, arities).values[0] };
}

// By variable, the belief of its step.
//
// A message goes to the first later step that has a variable of its scope. Read backwards, the
// belief of a step is its product times (belief of the receiver, summed to the message's scope)
// over the message: all factors together with everything else summed out.
export function believe(steps, arities) {
  const position = new Map(steps.map((step, place) => [step.variable, place]));
  const beliefs = new Map();
  for (const { variable, product, message } of [...steps].reverse()) {
    let belief = product;
    if (message.scope.length > 0) {
      const receiver = Math.min(...message.scope.map((v) => position.get(v)));
      const known = beliefs.get(steps[receiver].variable);
      const update = divide(sumTo(message.scope, known, arities), message);
      belief = multiply([product, update], arities);
    }
    beliefs.set(variable, belief);
  }
  return beliefs;
}
