// The live part: evidence goes in by buttons and fields, posteriors of all variables come out.
//
// The most informative features stand first; the others are folded.

import { answerCase, codesOf } from "./answers.js";
import { buildCase } from "./case.js";
import { buildCard, mentions, showPosterior } from "./cards.js";
import { buildClassCard } from "./classes.js";
import { TooLargeError } from "./elimination.js";
import { make, makeButton, makeName } from "./elements.js";
import { logJoint } from "./explain.js";
import { percent, relation, small } from "./format.js";
import { infer } from "./inference.js";

const TOO_LARGE =
  "An exact answer would need tables that are too large for a page. " +
  "Choose states of more variables; marginbn itself can answer more.";
const IMPOSSIBLE =
  "These states cannot occur together: the network gives them probability zero. Take one back.";
const IN_VIEW = 8; // features before the fold, if there are at least three behind it
const FEWEST_FOLDED = 3;

// Build the part into a place of the page.
//
// order lists the features that have a choice of states, the most informative first;
// onChange(evidence, posteriors) is called after every change. Returns two functions: one replaces
// the evidence by pairs of variable and state, the other sets or takes back one state.
export function buildExplorer(place, network, { order, sheet, title }, onChange) {
  const evidence = new Map();
  const typed = new Map(); // what was typed for a state, as text
  const classes = buildClassCard(network.variables[0], toggle);
  const views = new Map(order.map((i) => [i, buildCard(network.variables[i], i, toggle)]));
  const status = make("p", { class: "status", role: "status" });
  const chosen = make("div", { class: "chosen" });
  const shown = make("div", { class: "features" });
  const folded = make("div", { class: "features" });
  const summary = make("summary");
  const fold = make("details", { class: "fold" }, summary, folded);
  const reasons = buildCase(network, sheet, title);
  const prior = answer(network, evidence, typed).posteriors;

  function toggle(variable, state, text) {
    if (state === undefined || (text === undefined && evidence.get(variable) === state)) {
      evidence.delete(variable);
    } else {
      evidence.set(variable, state);
    }
    if (text === undefined) typed.delete(variable);
    else typed.set(variable, text);
    update();
  }

  function setEvidence(pairs) {
    evidence.clear();
    typed.clear();
    for (const [variable, state] of pairs) evidence.set(variable, state);
    update();
  }

  function update() {
    const found = answer(network, evidence, typed);
    showPosterior(classes, found.posteriors?.[0], prior?.[0], evidence.get(0));
    for (const [i, view] of views) {
      showPosterior(view, found.posteriors?.[i], prior?.[i], evidence.get(i));
    }
    status.textContent = found.problem ?? describe(network, evidence, found);
    status.classList.toggle("problem", Boolean(found.problem));
    chosen.replaceChildren(...describeChosen(network, evidence, typed, toggle, () => setEvidence([])));
    reasons.show(evidence, typed, found.posteriors?.[0], found.values);
    onChange(evidence, found.posteriors);
  }

  function arrange(byInformation) {
    const indices = byInformation ? order : [...order].sort((a, b) => a - b);
    const most = indices.length - IN_VIEW < FEWEST_FOLDED ? indices.length : IN_VIEW;
    shown.replaceChildren(...indices.slice(0, most).map((i) => views.get(i).card));
    folded.replaceChildren(...indices.slice(most).map((i) => views.get(i).card));
    fold.hidden = most === indices.length;
    const kind = byInformation ? ", which say less about the class" : "";
    summary.textContent = `${indices.length - most} more features${kind}`;
  }

  function search(text) {
    for (const [i, { card }] of views) card.hidden = !mentions(network.variables[i], text);
    if (text) fold.open = true;
  }

  arrange(true);
  place.append(
    buildControls(search, arrange, order.length),
    make("div", { class: "bar" }, chosen, status),
    make(
      "div",
      { class: "cards" },
      make("div", { class: "side" }, classes.card, reasons.element),
      make("div", { class: "evidence" }, shown, fold, ...describeConstant(network, order)),
    ),
  );
  update();
  return { setEvidence, toggle };
}

// The result of the inference, or the problem with it in words. Where there is a class model, it
// answers for the class.
function answer(network, evidence, typed) {
  try {
    const found = infer(network, evidence);
    if (!found.posteriors) return { posteriors: null, values: null, problem: IMPOSSIBLE };
    const { model } = network;
    if (!model) return { ...found, values: logJoint(network, evidence) };
    const own = answerCase(model, codesOf(model, evidence, typed));
    const posteriors = evidence.has(0) ? found.posteriors : [own, ...found.posteriors.slice(1)];
    return { ...found, posteriors, values: own.map((p) => Math.log(p)) };
  } catch (error) {
    if (!(error instanceof TooLargeError)) throw error;
    return { posteriors: null, values: null, problem: TOO_LARGE };
  }
}

function buildControls(search, arrange, count) {
  const field = make("input", { type: "search", id: "find", placeholder: "name or state" });
  field.addEventListener("input", () => search(field.value));
  const box = make("input", { type: "checkbox", id: "informative" });
  box.checked = true;
  box.addEventListener("change", () => arrange(box.checked));
  const controls = make(
    "div",
    { class: "controls" },
    make("label", { for: "find" }, "Find a feature ", field),
    make("label", { for: "informative" }, box, " most informative first"),
  );
  controls.hidden = count < 6; // few cards are found at a glance
  return controls;
}

function describeConstant(network, order) {
  const idle = network.variables.map((_, i) => i).filter((i) => i > 0 && !order.includes(i));
  if (idle.length === 0) return [];
  const names = idle.flatMap((i, k) => [k ? ", " : "", makeName(network.variables[i].name)]);
  return [make("p", { class: "small idle" }, "With one state only, so without influence: ", ...names)];
}

function describe(network, evidence, { logProbability, posteriors }) {
  const likeliest = posteriors[0].indexOf(Math.max(...posteriors[0]));
  const { name, states } = network.variables[0];
  const verdict = `${name} = ${states[likeliest]}: ${percent(posteriors[0][likeliest])}`;
  if (evidence.size === 0) return `Nothing chosen yet. Most probable: ${verdict}.`;
  return `Most probable: ${verdict}. Probability of what you chose: ${small(logProbability)}`;
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
