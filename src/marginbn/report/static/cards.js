// Cards with lines: a line has a name, a bar in a lane of its own, and a probability. Cards of
// features show their states, or at most eight groups of them; the card of the class shows the
// classes, of many the most probable ones.
//
// Tab goes from card to card, the arrow keys from line to line within one.

import { make, makeButton, makeName } from "./elements.js";
import { label, percent } from "./format.js";

const MOST_LINES = 8;
const STEPS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };

// Lines that can be pressed. show(entries) fills them with {name, states, probability, prior,
// pressed}; press(entry) is called with the one that was pressed.
export function buildLines(count, title, press) {
  let entries = [];
  const buttons = Array.from({ length: count }, (_, k) => {
    const lane = make("span", { class: "lane", "aria-hidden": "true" }, make("i"), make("b"));
    const parts = [make("span", { class: "name" }), lane, make("span", { class: "number" })];
    return makeButton({ class: "state", "aria-pressed": "false" }, () => press(entries[k]), ...parts);
  });
  const group = make("div", { role: "group", "aria-labelledby": title, class: "states" }, ...buttons);
  letRoam(group, buttons);
  const show = (shown) => {
    entries = shown;
    buttons.forEach((button, k) => fillLine(button, entries[k]));
  };
  return { group, show };
}

function fillLine(button, { name, states, probability, prior, pressed }) {
  button.firstChild.replaceChildren(makeName(name));
  button.title = name;
  button.dataset.states = states.join(" ");
  button.dataset.probability = probability ?? "";
  button.setAttribute("aria-pressed", String(pressed));
  button.style.setProperty("--p", probability ?? 0);
  button.style.setProperty("--prior", prior ?? -1);
  button.lastChild.textContent = probability === undefined ? "–" : percent(probability);
}

// One stop of the Tab key for many buttons: the arrow keys go from one to the next.
function letRoam(group, buttons) {
  const stop = (focused) => buttons.forEach((b) => (b.tabIndex = b === focused ? 0 : -1));
  stop(buttons[0]);
  group.addEventListener("focusin", (event) => stop(event.target));
  group.addEventListener("keydown", (event) => {
    const here = buttons.indexOf(event.target);
    const ends = { Home: 0, End: buttons.length - 1 };
    const next = buttons[ends[event.key] ?? here + (STEPS[event.key] ?? NaN)];
    if (!next || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    next.focus();
  });
}

const sumOf = (posterior, states) => posterior && states.reduce((sum, s) => sum + posterior[s], 0);

// The groups of a variable as entries of lines.
export function entriesOf({ groups }, posterior, prior, observed) {
  return groups.map(({ name, states }) => ({
    name,
    states,
    probability: sumOf(posterior, states),
    prior: sumOf(prior, states),
    pressed: states.includes(observed),
  }));
}

// toggle(variable, state, typed) is called when a line is pressed, a state chosen or a number typed;
// without a state the variable becomes unknown. A group is known by its most probable state.
export function buildCard(variable, index, toggle) {
  const title = `variable-${index}`;
  const heading = make("h3", { id: title, title: variable.name }, makeName(variable.name));
  let latest = [];
  const press = ({ states, pressed }) => {
    const likeliest = states.reduce((a, b) => (latest[b] > latest[a] ? b : a));
    toggle(index, pressed ? undefined : likeliest);
  };
  const lines = buildLines(variable.groups.length, title, press);
  const card = make("section", { class: "card", "data-variable": index }, heading);
  const input = buildInput(variable, title, (state, typed) => toggle(index, state, typed));
  if (input) card.append(input.element);
  card.append(lines.group);
  const show = (posterior, prior, observed) => {
    latest = prior ?? latest;
    card.classList.toggle("observed", observed !== undefined);
    input?.show(observed);
    lines.show(entriesOf(variable, posterior, prior, observed));
  };
  return { card, show };
}

// The bin of a number: bin k ends at cuts[k], which belongs to it.
export function binOf(cuts, value) {
  const bin = cuts.findIndex((cut) => value <= cut);
  return bin < 0 ? cuts.length : bin;
}

// A field for a number, or a list of the states that have no line of their own.
function buildInput({ cuts, states, groups }, title, choose) {
  if (cuts?.length) return buildNumber(cuts, title, choose);
  const others = groups.find((group) => group.states.length > 1);
  if (cuts || !others) return null;
  const names = others.states.map((s) => make("option", { value: s }, label(states[s])));
  const element = make("select", { "aria-labelledby": title });
  element.append(make("option", { value: "" }, "choose another value"), ...names);
  element.addEventListener("change", () => {
    choose(element.value === "" ? undefined : Number(element.value));
  });
  return { element, show: (state) => (element.value = others.states.includes(state) ? state : "") };
}

function buildNumber(cuts, title, choose) {
  const attributes = { type: "number", step: "any", placeholder: "type a number" };
  const element = make("input", { ...attributes, "aria-labelledby": title });
  const typed = () => (element.value === "" ? undefined : binOf(cuts, Number(element.value)));
  element.addEventListener("input", () => choose(typed(), element.value || undefined));
  const show = (state) => {
    if (typed() !== state) element.value = ""; // the state was set or taken back elsewhere
  };
  return { element, show };
}

// By probability, the largest first; ties by index.
export function byProbability(posterior) {
  return [...posterior.keys()].sort((a, b) => posterior[b] - posterior[a] || a - b);
}

// The card of the class; show(posterior, prior, observed) as above.
export function buildClassCard({ name, states }, toggle) {
  const heading = make("h3", { id: "variable-0", title: name }, makeName(name));
  const count = Math.min(states.length, MOST_LINES);
  const press = ({ states: [state], pressed }) => toggle(0, pressed ? undefined : state);
  const lines = buildLines(count, "variable-0", press);
  const card = make("section", { class: "card class", "data-variable": 0 }, heading, lines.group);
  if (states.length > count) {
    card.append(make("p", { class: "small" }, `The ${count} most probable of ${states.length} classes`));
  }
  const show = (posterior, prior, observed) => {
    const all = [...states.keys()];
    const shown = states.length > count && posterior ? byProbability(posterior) : all;
    const entry = (c) => ({
      name: states[c],
      states: [c],
      probability: posterior?.[c],
      prior: prior?.[c],
      pressed: observed === c,
    });
    lines.show(shown.slice(0, count).map(entry));
  };
  return { card, show };
}

// Whether a card has to do with what was typed into the search field.
export function mentions(variable, typed) {
  const wanted = typed.trim().toLowerCase();
  return [variable.name, ...variable.states].some((name) =>
    label(name).toLowerCase().includes(wanted),
  );
}
