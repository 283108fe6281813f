// A card per variable: its states as buttons, each with its name, a bar in a lane of its own, and its
// probability. Numbers have a field beside them: what is typed falls into its bin. A feature with
// many states, such as the fine bins of a number, has a strip instead (strip.js).
//
// Tab goes from card to card, the arrow keys from state to state within one.

import { make, makeButton, makeName } from "./elements.js";
import { letRoam } from "./focus.js";
import { label, percent } from "./format.js";
import { buildStrip, buildNumber } from "./strip.js";

const MOST_BUTTONS = 24;

// toggle(variable, state, typed) is called when a state is pressed or a number typed.
export function buildCard(variable, index, toggle) {
  if (variable.states.length > MOST_BUTTONS) return buildStrip(variable, index, toggle);
  const title = `variable-${index}`;
  const heading = make("h3", { id: title, title: variable.name }, makeName(variable.name));
  const { group, buttons } = buildStates(variable, title, (state) => toggle(index, state));
  const card = make("section", { class: "card", "data-variable": index }, heading);
  if (!variable.cuts || variable.cuts.length === 0) {
    card.append(group);
    return { card, buttons };
  }
  let observed;
  const field = buildNumber(variable.cuts, title, (state, typed) => {
    if (state !== observed || typed !== undefined) toggle(index, state, typed);
  });
  card.append(field.element, group);
  const show = (_, state) => {
    observed = state;
    field.show(state);
  };
  return { card, buttons, show };
}

// The states of a variable as buttons that are pressed or not; listed(buttons) gives those that the
// arrow keys go through.
export function buildStates(variable, title, press, listed = (buttons) => buttons) {
  const buttons = variable.states.map((state, s) => buildState(state, s, () => press(s)));
  const group = make("div", { role: "group", "aria-labelledby": title, class: "states" });
  group.append(...buttons);
  const settle = letRoam(group, () => listed(buttons));
  return { group, buttons, settle };
}

function buildState(state, s, press) {
  const attributes = { class: "state", "aria-pressed": "false", title: state, "data-state": s };
  const name = makeName(state, { class: "name" });
  const lane = make("span", { class: "lane", "aria-hidden": "true" }, make("i"), make("b"));
  return makeButton(attributes, press, name, lane, make("span", { class: "number" }));
}

// Show a posterior, null where there is none; the prior is marked on the bars.
export function showPosterior({ card, buttons, show }, posterior, prior, observed) {
  card.classList.toggle("observed", observed !== undefined);
  if (show) show(posterior, observed);
  buttons.forEach((button, state) => {
    const probability = posterior ? posterior[state] : null;
    button.setAttribute("aria-pressed", String(observed === state));
    button.dataset.probability = probability ?? "";
    button.style.setProperty("--p", probability ?? 0);
    button.style.setProperty("--prior", prior ? prior[state] : -1);
    button.lastChild.textContent = probability === null ? "–" : percent(probability);
  });
}

// Whether a card has to do with what was typed into the search field.
export function mentions(variable, typed) {
  const wanted = typed.trim().toLowerCase();
  return [variable.name, ...variable.states].some((name) =>
    label(name).toLowerCase().includes(wanted),
  );
}
