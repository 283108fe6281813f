// The card of the class: few classes in their own order, many by probability with the first ones in
// view and the others folded.

import { buildStates } from "./cards.js";
import { make, makeButton, makeName } from "./elements.js";

const SORTED_FROM = 7; // fewer classes keep their order, which is easier to follow
const FIRST_CLASSES = 5;

// By probability, the largest first; ties by index.
export function byProbability(posterior) {
  return [...posterior.keys()].sort((a, b) => posterior[b] - posterior[a] || a - b);
}

// toggle(0, state) is called when a class is pressed.
export function buildClassCard(variable, toggle) {
  const heading = make("h3", { id: "variable-0", title: variable.name }, makeName(variable.name));
  let sorted = null; // many classes only
  const listed = (buttons) => (sorted ?? buttons).filter((button) => !button.hidden);
  const press = (state) => toggle(0, state);
  const { group, buttons, settle } = buildStates(variable, "variable-0", press, listed);
  const card = make("section", { class: "card class", "data-variable": 0 }, heading, group);
  if (buttons.length < SORTED_FROM) return { card, buttons };

  let all = false;
  sorted = [...buttons];
  const words = () => (all ? `The first ${FIRST_CLASSES} only` : `All ${buttons.length} classes`);
  const more = makeButton({ class: "more", "aria-expanded": "false" }, () => {
    all = !all;
    more.textContent = words();
    more.setAttribute("aria-expanded", String(all));
    hide();
  }, words());
  const hide = () => {
    sorted.forEach((button, i) => (button.hidden = !all && i >= FIRST_CLASSES));
    for (const button of buttons) if (button.hidden) button.tabIndex = -1;
    settle();
  };
  card.append(more);

  function show(posterior) {
    const focused = document.activeElement;
    sorted = (posterior ? byProbability(posterior) : [...buttons.keys()]).map((s) => buttons[s]);
    group.replaceChildren(...sorted);
    hide();
    if (buttons.includes(focused) && !focused.hidden) focused.focus({ preventScroll: true });
  }
  return { card, buttons, show };
}
