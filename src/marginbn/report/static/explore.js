// The live part: evidence goes in by lines and fields, posteriors of all variables come out.
//
// The features that move the class most come first; the others are folded.

import { answerCase, codesOf } from "./answers.js";
import { buildCard, buildClassCard, mentions } from "./cards.js";
import { TooLargeError } from "./elimination.js";
import { make, makeButton, makeName } from "./elements.js";
import { moreColumns, relation } from "./format.js";
import { infer } from "./inference.js";
import { buildWaterfall } from "./waterfall.js";

const TOO_LARGE =
  "An exact answer would need tables that are too large for a page. " +
  "Choose states of more columns; marginbn itself can answer more.";
const IMPOSSIBLE =
  "These states cannot occur together: the network gives them probability zero. Take one back.";
const IN_VIEW = 8; // features before the fold, if there are at least three behind it
const FEWEST_FOLDED = 3;

// Build the part into a place of the page. order lists the features that have a choice of states;
// onChange(evidence, posteriors, prior) is called after every change.
export function buildExplorer(place, network, { order, shown }, onChange) {
  const evidence = new Map();
  const typed = new Map(); // what was typed for a state, as text
  const classes = buildClassCard(network.variables[0], toggle);
  const views = new Map(order.map((i) => [i, buildCard(network.variables[i], i, toggle)]));
  const problem = make("p", { class: "problem", role: "alert" });
  const chosen = make("div", { class: "chosen" });
  const why = buildWaterfall(network, shown);
  const prior = answer(network, evidence, typed).posteriors;

  function toggle(variable, state, text) {
    if (state === undefined) evidence.delete(variable);
    else evidence.set(variable, state);
    if (text === undefined) typed.delete(variable);
    else typed.set(variable, text);
    update();
  }

  function clear() {
    evidence.clear();
    typed.clear();
    update();
  }

  function update() {
    const found = answer(network, evidence, typed);
    classes.show(found.posteriors?.[0], prior?.[0], evidence.get(0));
    for (const [i, view] of views) view.show(found.posteriors?.[i], prior?.[i], evidence.get(i));
    problem.textContent = found.problem ?? "";
    chosen.replaceChildren(...describeChosen(network, evidence, typed, toggle, clear));
    why.show(evidence, typed, evidence.has(0) ? null : found.posteriors?.[0]);
    onChange(evidence, found.posteriors, prior);
  }

  const most = order.length - IN_VIEW < FEWEST_FOLDED ? order.length : IN_VIEW;
  const cards = order.map((i) => views.get(i).card);
  const fold = make("details", { class: "fold" });
  fold.append(make("summary", {}, moreColumns(order.length - most)));
  fold.append(make("div", { class: "features" }, ...cards.slice(most)));
  fold.hidden = most === order.length;
  const search = buildSearch((text) => {
    for (const [i, { card }] of views) card.hidden = !mentions(network.variables[i], text);
    if (text) fold.open = true;
  });
  search.hidden = fold.hidden;
  const print = makeButton({ class: "action" }, () => {
    document.documentElement.dataset.print = "case";
    window.print();
  }, "Print this case");
  window.addEventListener("afterprint", () => delete document.documentElement.dataset.print);
  place.append(
    make("div", { class: "answer" }, why.sentence, problem, chosen),
    make(
      "div",
      { class: "cards" },
      make("div", { class: "side" }, classes.card, why.element, print),
      make(
        "div",
        { class: "evidence" },
        search,
        make("div", { class: "features" }, ...cards.slice(0, most)),
        fold,
        ...describeConstant(network, order),
      ),
    ),
  );
  update();
}

// The result of the inference, or the problem with it in words. Where there is a class model, it
// answers for the class.
function answer(network, evidence, typed) {
  try {
    const { posteriors } = infer(network, evidence);
    if (!posteriors) return { posteriors: null, problem: IMPOSSIBLE };
    const { model } = network;
    if (!model || evidence.has(0)) return { posteriors };
    return { posteriors: [answerCase(model, codesOf(model, evidence, typed)), ...posteriors.slice(1)] };
  } catch (error) {
    if (!(error instanceof TooLargeError)) throw error;
    return { posteriors: null, problem: TOO_LARGE };
  }
}

function buildSearch(search) {
  const field = make("input", { type: "search", id: "find", placeholder: "name or value" });
  field.addEventListener("input", () => search(field.value));
  return make("label", { for: "find", class: "search" }, "Find a column ", field);
}

function describeConstant(network, order) {
  const idle = network.variables.map((_, i) => i).filter((i) => i > 0 && !order.includes(i));
  if (idle.length === 0) return [];
  const names = idle.flatMap((i, k) => [k ? ", " : "", makeName(network.variables[i].name)]);
  return [make("p", { class: "small idle" }, "Without influence, with one value only: ", ...names)];
}

function describeChosen(network, evidence, typed, toggle, clear) {
  if (evidence.size === 0) return [];
  const chips = [...evidence].map(([variable, state]) => {
    const { name, states } = network.variables[variable];
    const attributes = { class: "chip", "aria-label": `take back ${name} = ${states[state]}` };
    const value = typed.has(variable)
      ? [` = ${typed.get(variable)}`]
      : [relation(states[state]), makeName(states[state])];
    const words = [makeName(name), ...value, make("span", { "aria-hidden": "true" }, " ×")];
    return makeButton(attributes, () => toggle(variable), ...words);
  });
  return [...chips, makeButton({ class: "clear" }, clear, "Clear all")];
}
