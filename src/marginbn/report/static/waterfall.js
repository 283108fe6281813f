// Why a case has its probability: a sentence, and a waterfall from the base rate to the case.
//
// Logs of the answer are sums over the known features (see answers.js and explain.js). Added one
// after the other, the largest first, each sum is a probability, and each feature a step between two.

import { codesOf, contribute } from "./answers.js";
import { byProbability } from "./cards.js";
import { make, makeName } from "./elements.js";
import { explainCase } from "./explain.js";
import { percent, points, relation } from "./format.js";

const FIRST_STEPS = 7; // in view; the others are one step
const REASON = 0.01; // a smaller step is no reason
const OBJECTION = 0.05;
const LEAST = -700; // in place of the logarithm of zero
const CERTAINTY = [
  [0.95, "Very likely"],
  [0.8, "Likely"],
  [0.6, "Probably"],
  [0, "Undecided, slightly in favour of"],
];

// Steps to the probability of class c: [{variable, start, end}], that to the base rate first, with
// no start; the last one has no variable if it sums up several.
export function stepsTo(network, evidence, typed, c) {
  const { base, terms } = termsOf(network, evidence, typed);
  const rival = byProbability(softmax(total(base, terms))).find((other) => other !== c);
  const size = ({ values }) => Math.abs(values[c] - values[rival]);
  terms.sort((a, b) => size(b) - size(a) || a.variable - b.variable);
  const [first, rest] = [terms.slice(0, FIRST_STEPS), terms.slice(FIRST_STEPS)];
  if (rest.length > 0) first.push({ count: rest.length, values: total(base.map(() => 0), rest) });
  let sum = base;
  let end = softmax(sum)[c];
  const steps = [{ end }];
  for (const { values, ...term } of first) {
    const start = end;
    sum = sum.map((value, k) => value + values[k]);
    end = softmax(sum)[c];
    steps.push({ ...term, start, end });
  }
  return steps;
}

function termsOf(network, evidence, typed) {
  const { model } = network;
  if (!model) {
    const finite = ({ variable, values }) => ({ variable, values: values.map((v) => Math.max(v, LEAST)) });
    const [own, ...terms] = explainCase(network, evidence).map(finite);
    return { base: own.values, terms };
  }
  const { base, added } = contribute(model, codesOf(model, evidence, typed));
  const known = [...evidence.keys()].filter((variable) => variable > 0);
  return { base: [...base], terms: known.map((v) => ({ variable: v, values: added[v - 1] })) };
}

function total(base, terms) {
  return base.map((value, c) => terms.reduce((sum, { values }) => sum + values[c], value));
}

function softmax(logs) {
  const peak = Math.max(...logs);
  const values = logs.map((value) => Math.exp(value - peak));
  const sum = values.reduce((a, b) => a + b, 0);
  return values.map((value) => value / sum);
}

// Returns the element and show(evidence, typed, posterior); shown is the class of two whose
// probability is followed, of more classes it is the most probable one.
export function buildWaterfall(network, shown) {
  const sentence = make("p", { class: "sentence", role: "status" });
  const title = make("h3", { id: "why-title" });
  const list = make("ol", { class: "waterfall" });
  const element = make("section", { class: "card why", "aria-labelledby": "why-title" }, title, list);
  const { name, states } = network.variables[0];

  function show(evidence, typed, posterior) {
    element.hidden = !posterior || states.length < 2;
    if (element.hidden) return sentence.replaceChildren();
    const likeliest = byProbability(posterior)[0];
    const c = states.length === 2 ? shown : likeliest;
    const steps = stepsTo(network, evidence, typed, c);
    title.replaceChildren("Why: probability of ", makeName(name), " = ", makeName(states[c]));
    const words = (step) => describeStep(network, evidence, typed, step);
    list.replaceChildren(
      buildStep(["Nothing known (base rate)"], 0, steps[0].end, "base", percent(steps[0].end)),
      ...steps.slice(1).map((step) => {
        const kind = step.end < step.start ? "against" : "for";
        const item = buildStep(words(step), step.start, step.end, kind, points(step.end - step.start));
        item.dataset.variable = step.variable ?? "";
        return item;
      }),
      buildStep(["This case"], 0, steps.at(-1).end, "sum", percent(steps.at(-1).end)),
    );
    list.style.setProperty("--base", steps[0].end);
    const toward = c === likeliest ? 1 : -1;
    sentence.replaceChildren(...describe(network, posterior, steps, toward, words));
  }
  return { sentence, element, show };
}

// As in: Likely Churn = No (92.3 %), mainly because of tenure = 51 and Contract = One year.
function describe(network, posterior, steps, toward, words) {
  const { name, states } = network.variables[0];
  const likeliest = byProbability(posterior)[0];
  const answer = [makeName(name), " = ", makeName(states[likeliest])];
  const probability = ` (${percent(posterior[likeliest])})`;
  if (steps.length === 1) return ["Nothing is known yet: ", ...answer, `${probability}.`];
  const certainty = CERTAINTY.find(([least]) => posterior[likeliest] >= least)[1];
  const moved = steps.slice(1).filter(({ variable }) => variable !== undefined);
  const gain = ({ start, end }) => toward * (end - start);
  const reasons = moved.filter((step) => gain(step) >= REASON).sort((a, b) => gain(b) - gain(a));
  const objection = moved.filter((step) => gain(step) <= -OBJECTION).sort((a, b) => gain(a) - gain(b))[0];
  const because = reasons.slice(0, 2).flatMap((step, k) => [k ? " and " : ", mainly because of ", ...words(step)]);
  const against = objection ? [" Against it: ", ...words(objection), "."] : [];
  return [`${certainty} `, ...answer, probability, ...because, ".", ...against];
}

function describeStep(network, evidence, typed, { variable, count }) {
  if (variable === undefined) return [`${count} more`];
  const { name, states } = network.variables[variable];
  const state = states[evidence.get(variable)];
  if (typed.has(variable)) return [makeName(name), ` = ${typed.get(variable)}`];
  if (state === "any number") return [makeName(name), " known"];
  return [makeName(name), relation(state), makeName(state)];
}

function buildStep(words, start, end, kind, number) {
  const bar = make("i");
  bar.style.setProperty("--start", Math.min(start, end));
  bar.style.setProperty("--size", Math.abs(end - start));
  const lane = make("span", { class: "lane", "aria-hidden": "true" }, bar);
  const item = make("li", { class: kind, "data-end": end });
  item.append(make("span", { class: "words" }, ...words), make("span", { class: "number" }, number), lane);
  return item;
}
