// A card per variable: its states as buttons, each with its probability and a bar; a feature with
// many states, such as the fine bins of a number, has a strip instead (strip.js).
//
// Tab goes from card to card, the arrow keys from state to state within one.

import { make, makeButton, makeName } from "./elements.js";
import { letRoam } from "./focus.js";
import { label, percent } from "./format.js";
import { buildStrip } from "./strip.js";

const MOST_BUTTONS = 24;

// toggle(variable, state) is called when a state is pressed.
export function buildCard(variable, index, toggle) {
  if (index > 0 && variable.states.length > MOST_BUTTONS) return buildStrip(variable, index, toggle);
  const title = `variable-${index}`;
  const heading = make("h3", { id: title, title: variable.name }, makeName(variable.name));
  const buttons = variable.states.map((state, s) => buildState(state, () => toggle(index, s)));
  const group = make("div", { role: "group", "aria-labelledby": title, class: "states" });
  group.append(...buttons);
  letRoam(group, buttons);
  const kind = index === 0 ? "card class" : "card";
  const card = make("section", { class: kind, "data-variable": index }, heading, group);
  return { card, buttons };
}

function buildState(state, press) {
  const attributes = { class: "state", "aria-pressed": "false", title: state };
  const name = makeName(state, { class: "name" });
  return makeButton(attributes, press, name, make("span", { class: "number" }));
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

// Scroll a long card, not the page, to its most probable state, unless somebody is busy in it.
export function showLikeliest({ card, buttons }, posterior) {
  if (!posterior || card.contains(document.activeElement)) return;
  const likeliest = buttons[posterior.indexOf(Math.max(...posterior))];
  const group = likeliest.parentElement;
  group.scrollTop = likeliest.offsetTop + (likeliest.offsetHeight - group.clientHeight) / 2;
}

// Whether a card has to do with what was typed into the search field.
export function mentions(variable, typed) {
  const wanted = typed.trim().toLowerCase();
  return [variable.name, ...variable.states].some((name) =>
    label(name).toLowerCase().includes(wanted),
  );
}
