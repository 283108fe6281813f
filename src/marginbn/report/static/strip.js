// A card for a variable with many states: a strip of bars instead of a button for each.
//
// Numbers are typed in; states that are no bins of a number are chosen from a list.

import { make, makeName } from "./elements.js";
import { label, percent } from "./format.js";

// The bin of a number: bin k ends at cuts[k], which belongs to it.
export function binOf(cuts, value) {
  const bin = cuts.findIndex((cut) => value <= cut);
  return bin < 0 ? cuts.length : bin;
}

// toggle(variable, state, typed) sets a state; without a state, or with one that was set by a press,
// it is taken back.
export function buildStrip(variable, index, toggle) {
  const title = `variable-${index}`;
  const heading = make("h3", { id: title, title: variable.name }, makeName(variable.name));
  let observed;
  const choose = (state, typed) => {
    if (state !== observed || typed !== undefined) toggle(index, state, typed);
  };
  const input = variable.cuts
    ? buildNumber(variable.cuts, title, choose)
    : buildList(variable.states, title, choose);
  const bars = variable.states.map((state, s) => make("i", { title: state, "data-state": s }));
  const words = make("p", { class: "small" });
  const strip = make("div", { class: "strip", "aria-hidden": "true" }, ...bars);
  const card = make("section", { class: "card", "data-variable": index }, heading);
  card.append(input.element, strip, words);

  function show(posterior, state) {
    observed = state;
    input.show(state);
    showBars(bars, posterior, state);
    words.textContent = describeStrip(variable, posterior, state);
  }
  return { card, buttons: [], show };
}

// A field for a number. choose(state, text) is called with the bin of what was typed, or with
// nothing when the field is empty.
export function buildNumber(cuts, title, choose) {
  const attributes = { type: "number", step: "any", placeholder: "type a number" };
  const element = make("input", { ...attributes, "aria-labelledby": title });
  const typed = () => (element.value === "" ? undefined : binOf(cuts, Number(element.value)));
  element.addEventListener("input", () => choose(typed(), element.value || undefined));
  const show = (state) => {
    if (typed() !== state) element.value = ""; // the state was set or taken back elsewhere
  };
  return { element, show };
}

function buildList(states, title, choose) {
  const names = states.map((state, s) => make("option", { value: s }, label(state)));
  const element = make("select", { "aria-labelledby": title });
  element.append(make("option", { value: "" }, "not chosen"), ...names);
  element.addEventListener("change", () => {
    choose(element.value === "" ? undefined : Number(element.value));
  });
  const show = (state) => {
    element.value = state ?? "";
  };
  return { element, show };
}

function showBars(bars, posterior, observed) {
  const largest = posterior ? Math.max(...posterior) : 1;
  bars.forEach((bar, state) => {
    bar.dataset.probability = posterior ? posterior[state] : "";
    bar.style.setProperty("--p", posterior ? posterior[state] / largest : 0);
    bar.classList.toggle("chosen", state === observed);
  });
}

function describeStrip(variable, posterior, observed) {
  if (observed !== undefined) return `chosen: ${label(variable.states[observed])}`;
  if (!posterior) return "–";
  const likeliest = posterior.indexOf(Math.max(...posterior));
  const name = label(variable.states[likeliest]);
  return `${variable.states.length} states, most probable ${name}: ${percent(posterior[likeliest])}`;
}
