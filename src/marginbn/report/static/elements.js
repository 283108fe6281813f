// Elements of the page. Text only ever becomes text, so no name can turn into markup.

import { label } from "./format.js";

// An element with attributes and children; texts among the children become text.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// A name from the data, on its own in right-to-left text.
export function makeName(name, attributes = {}) {
  return make("bdi", attributes, label(name));
}

// A button with what happens when it is pressed.
export function makeButton(attributes, act, ...children) {
  const button = make("button", { type: "button", ...attributes }, ...children);
  button.addEventListener("click", act);
  return button;
}
