// The case: what was chosen, why it speaks for which class, and a sheet to print.
//
// The waterfall begins with what is known before anything is chosen, and every term takes the sum of
// the log odds a step further. Bars stand under their words, never behind them.

import { codesOf, contribute } from "./answers.js";
import { make, makeButton, makeName } from "./elements.js";
import { explainCase, rivals } from "./explain.js";
import { label, odds, percent, relation, signed } from "./format.js";
import { byProbability } from "./classes.js";

const FIRST_TERMS = 7; // terms in view; the others are added up
const CLASSES = 5; // on the sheet

// Returns the element and show(evidence, typed, posteriors, logJoint), null where there is no answer.
export function buildCase(network, sheet, title) {
  const body = make("div", { class: "terms" });
  const name = make("input", { type: "text", id: "case-name", placeholder: "for the print-out" });
  let content = () => [];
  const print = makeButton({ class: "action" }, () => {
    sheet.replaceChildren(...content());
    document.documentElement.dataset.print = "case";
    window.print();
  }, "Print this case");
  const element = make(
    "section",
    { class: "card case", "aria-labelledby": "case-title" },
    make("h3", { id: "case-title" }, "Why"),
    body,
    make("p", { class: "case-tools" }, make("label", { for: "case-name" }, "Case ", name), print),
  );
  window.addEventListener("afterprint", () => delete document.documentElement.dataset.print);

  function show(evidence, typed, posterior, values) {
    if (!posterior || values.length < 2) {
      body.replaceChildren();
      print.disabled = true;
      return;
    }
    print.disabled = false;
    const [first, second] = rivals(values);
    if (values[second] === -Infinity) {
      body.replaceChildren(make("p", { class: "small" }, "No other class is possible."));
      content = () => buildSheet(network, evidence, typed, posterior, [], title, name.value);
      return;
    }
    const terms = explain(network, evidence, typed, first, second);
    const words = (most) => buildWaterfall(network, evidence, typed, terms, first, second, most);
    body.replaceChildren(...words(FIRST_TERMS));
    content = () => buildSheet(network, evidence, typed, posterior, words(terms.length), title, name.value);
  }
  return { element, show };
}

// The terms of a case, those of the class model where there is one: from the base rate on.
function explain(network, evidence, typed, first, second) {
  const { model } = network;
  if (!model) return explainCase(network, evidence, first, second);
  const { base, added } = contribute(model, codesOf(model, evidence, typed), first, second);
  const terms = added.map((value, i) => ({ variable: i + 1, value }));
  const known = terms.filter(({ variable }) => evidence.has(variable));
  known.sort((a, b) => Math.abs(b.value) - Math.abs(a.value) || a.variable - b.variable);
  return [{ variable: 0, value: base }, ...known];
}

function buildWaterfall(network, evidence, typed, terms, first, second, most) {
  const states = network.variables[0].states;
  const total = terms.reduce((sum, { value }) => sum + value, 0);
  const heading = make("p", { class: "small" });
  heading.append(makeName(states[first]), " rather than ", makeName(states[second]));
  heading.append(`: odds ${odds(total)}. Bars are steps of the log odds; 0.69 doubles the odds.`);
  const [base, ...others] = terms;
  const moving = others.filter(({ value }) => value !== 0);
  const rest = moving.slice(most);
  const steps = [
    { words: [others.length ? "The class itself, before that" : "The class itself"], value: base.value },
    ...moving.slice(0, most).map(({ variable, value }) => ({
      words: describeTerm(network, evidence, typed, variable),
      value,
      variable,
    })),
  ];
  if (rest.length > 0) {
    const value = rest.reduce((sum, term) => sum + term.value, 0);
    steps.push({ words: [`${rest.length} more`], value });
  }
  const still = others.length - moving.length;
  const list = make("ol", { class: "waterfall" }, ...buildSteps(steps, total));
  if (still === 0) return [heading, list];
  const verb = still === 1 ? "makes" : "make";
  return [heading, list, make("p", { class: "small" }, `${still} of what is known ${verb} no difference.`)];
}

// Odds of 1.1 : 1 are hardly a reason: their bar must not fill the lane.
const LEAST_SPAN = 0.5;

function buildSteps(steps, total) {
  const sums = [0];
  for (const { value } of steps) sums.push(sums.at(-1) + value);
  const low = Math.min(...sums);
  const span = Math.max(Math.max(...sums) - low, LEAST_SPAN);
  const place = (x) => (x - low) / span;
  const items = steps.map(({ words, value, variable }, k) => {
    const [start, end] = [sums[k], sums[k + 1]].map(place).sort((a, b) => a - b);
    return buildStep(words, value, start, end, place(0), value < 0 ? "against" : "for", variable);
  });
  const [start, end] = [place(0), place(total)].sort((a, b) => a - b);
  items.push(buildStep([make("strong", {}, "Sum")], total, start, end, place(0), "sum"));
  return items;
}

function buildStep(words, value, start, end, zero, kind, variable) {
  const bar = make("i");
  bar.style.setProperty("--start", start);
  bar.style.setProperty("--size", end - start);
  const lane = make("span", { class: "lane", "aria-hidden": "true" }, bar);
  lane.style.setProperty("--zero", zero);
  const item = make("li", { class: kind, "data-value": value });
  if (variable !== undefined) item.dataset.variable = variable;
  const number = make("span", { class: "number" }, signed(value));
  item.append(make("span", { class: "words" }, ...words), number, lane);
  return item;
}

// A chosen state in words, with the number that was typed and what it depends on.
export function describeTerm(network, evidence, typed, variable) {
  const others = network.parents[variable].filter((p) => p !== 0 && evidence.has(p));
  const words = describeChoice(network, variable, evidence.get(variable), typed.get(variable));
  if (others.length === 0) return words;
  const given = others.flatMap((p, k) => [
    k ? ", " : " given ",
    ...describeChoice(network, p, evidence.get(p), typed.get(p)),
  ]);
  return [...words, make("small", {}, ...given)];
}

function describeChoice(network, variable, state, typed) {
  const { name, states } = network.variables[variable];
  if (states[state] === "any number") return [makeName(name), " known"];
  if (typed !== undefined) return [makeName(name), ` = ${typed}`];
  return [makeName(name), relation(states[state]), makeName(states[state])];
}

function buildSheet(network, evidence, typed, posterior, waterfall, title, name) {
  const { name: target, states } = network.variables[0];
  const classes = byProbability(posterior).slice(0, CLASSES);
  const facts = [...evidence].filter(([v]) => v !== 0);
  const open = network.variables.length - 1 - facts.length;
  const first = percent(posterior[classes[0]]);
  const head = [
    make("h1", {}, name ? label(name) : "One case"),
    make("p", { class: "small" }, `${title} · ${new Date().toLocaleString()}`),
    make("h2", {}, makeName(target), ": ", makeName(states[classes[0]]), ` (${first})`),
  ];
  const answer = classes.map((c) => [makeName(states[c]), percent(posterior[c])]);
  const known = facts.map(([v, s]) => {
    const state = makeName(network.variables[v].states[s]);
    const value = typed.has(v) ? [`${typed.get(v)}, bin `, state] : state;
    return [makeName(network.variables[v].name), value];
  });
  const some = states.length > CLASSES ? `, the first ${CLASSES} of ${states.length} classes` : "";
  const tables = [buildFacts("What is known", known), buildFacts(`Probabilities${some}`, answer)];
  return [
    ...head,
    make("div", { class: "sheet-tables" }, ...tables),
    make("p", { class: "small" }, describeOpen(open)),
    make("h3", {}, "Why"),
    ...waterfall,
    make("p", { class: "small" }, "The classifier: ", aboutClassifier()),
  ];
}

function describeOpen(count) {
  if (count === 0) return "Every feature is known.";
  return `${count} feature${count === 1 ? " is" : "s are"} not known and summed out.`;
}

// What the first screen says of its quality, word for word.
function aboutClassifier() {
  const lines = [...document.querySelector(".half").querySelectorAll("p")];
  return lines.map((line) => line.lastChild.textContent.trim()).join(" ");
}

function buildFacts(heading, rows) {
  const lines = rows.map(([term, value]) =>
    make("tr", {}, make("th", { scope: "row" }, term), make("td", {}, ...[value].flat())),
  );
  return make("div", {}, make("h3", {}, heading), make("table", {}, make("tbody", {}, ...lines)));
}
