// Elements of the page. Text only ever becomes text, so no name can turn into markup.

import { label } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

// An element with attributes and children; texts among the children become text.
export function make(tag, attributes = {}, ...children) {
  return complete(document.createElement(tag), attributes, children);
}

// The same for a part of a drawing.
export function draw(tag, attributes = {}, ...children) {
  return complete(document.createElementNS(SVG, tag), attributes, children);
}

function complete(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// A name from the data, on its own in right-to-left text. Lines may end behind the signs that join
// words, so that long names do not break inside a word, and numbers do not break at all.
export function makeName(name, attributes = {}) {
  const pieces = label(name).split(/(?<=[\p{L}\p{N}][_./\\:;|-])(?=\p{L})/u);
  const parts = pieces.flatMap((piece, i) => (i ? [document.createElement("wbr"), piece] : [piece]));
  return make("bdi", attributes, ...parts);
}

// A button with what happens when it is pressed.
export function makeButton(attributes, act, ...children) {
  const button = make("button", { type: "button", ...attributes }, ...children);
  button.addEventListener("click", act);
  return button;
}
