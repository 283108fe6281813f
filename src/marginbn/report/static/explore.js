// The live part: evidence goes in by buttons, posteriors of all variables come out.

import { buildCard, mentions, showLikeliest, showPosterior } from "./cards.js";
import { TooLargeError } from "./elimination.js";
import { make, makeButton, makeName } from "./elements.js";
import { percent, small } from "./format.js";
import { infer } from "./inference.js";

const TOO_LARGE =
  "An exact answer would need tables that are too large for a page. " +
  "Choose states of more variables; marginbn itself can answer more.";
const IMPOSSIBLE =
  "These states cannot occur together: the network gives them probability zero. Take one back.";

// Build the part into a place of the page.
//
// order lists the features, the most informative first; onChange(evidence) is called after every
// change. Returns a function that replaces the evidence by pairs of variable and state.
export function buildExplorer(place, network, order, onChange) {
  const evidence = new Map();
  const views = network.variables.map((variable, i) => buildCard(variable, i, toggle));
  const status = make("p", { class: "status", role: "status" });
  const chosen = make("div", { class: "chosen" });
  const features = make("div", { class: "features" });
  const prior = answer(network, evidence).posteriors;

  function toggle(variable, state) {
    if (evidence.get(variable) === state) evidence.delete(variable);
    else evidence.set(variable, state);
    update();
  }

  function setEvidence(pairs) {
    evidence.clear();
    for (const [variable, state] of pairs) evidence.set(variable, state);
    update();
  }

  function update() {
    const found = answer(network, evidence);
    views.forEach((view, i) => {
      const posterior = found.posteriors && found.posteriors[i];
      showPosterior(view, posterior, prior && prior[i], evidence.get(i));
    });
    status.textContent = found.problem ?? describe(network, evidence, found);
    status.classList.toggle("problem", Boolean(found.problem));
    chosen.replaceChildren(...describeChosen(network, evidence, toggle, () => setEvidence([])));
    showLikeliest(views[0], found.posteriors && found.posteriors[0]);
    onChange(evidence);
  }

  function arrange(byInformation) {
    const indices = byInformation ? order : views.keys();
    features.replaceChildren(...[...indices].filter((i) => i > 0).map((i) => views[i].card));
  }

  function search(typed) {
    network.variables.forEach((variable, i) => {
      views[i].card.hidden = i > 0 && !mentions(variable, typed);
    });
  }

  arrange(false);
  const side = make("div", { class: "side" }, views[0].card);
  place.append(
    buildControls(search, arrange, network.variables.length),
    make("div", { class: "bar" }, chosen, status),
    make("div", { class: "cards" }, side, features),
  );
  update();
  return setEvidence;
}

// The result of the inference, or the problem with it in words.
function answer(network, evidence) {
  try {
    const found = infer(network, evidence);
    return found.posteriors ? found : { posteriors: null, problem: IMPOSSIBLE };
  } catch (error) {
    if (!(error instanceof TooLargeError)) throw error;
    return { posteriors: null, problem: TOO_LARGE };
  }
}

function buildControls(search, arrange, count) {
  const field = make("input", { type: "search", id: "find", placeholder: "name or state" });
  field.addEventListener("input", () => search(field.value));
  const box = make("input", { type: "checkbox", id: "informative" });
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

function describe(network, evidence, { logProbability, posteriors }) {
  const likeliest = posteriors[0].indexOf(Math.max(...posteriors[0]));
  const { name, states } = network.variables[0];
  const verdict = `${name} = ${states[likeliest]}: ${percent(posteriors[0][likeliest])}`;
  if (evidence.size === 0) return `Nothing chosen. Most probable: ${verdict}`;
  return `Most probable: ${verdict}. Probability of what you chose: ${small(logProbability)}`;
}

function describeChosen(network, evidence, toggle, clear) {
  if (evidence.size === 0) return [];
  const chips = [...evidence].map(([variable, state]) => {
    const { name, states } = network.variables[variable];
    const attributes = { class: "chip", "aria-label": `take back ${name} = ${states[state]}` };
    const words = [makeName(name), " = ", makeName(states[state]), make("span", {}, " ×")];
    return makeButton(attributes, () => toggle(variable, state), ...words);
  });
  return [...chips, makeButton({ class: "clear" }, clear, "Clear all")];
}
