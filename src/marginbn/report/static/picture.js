// The picture of the network: variables can be chosen, and those with evidence stand out.
//
// It is one stop of the Tab key; the arrow keys go from variable to variable.

import { make, makeName } from "./elements.js";
import { letRoam } from "./focus.js";
import { buildTable, describeTable } from "./tables.js";

const SMALLEST = 0.72; // below this share of its size a picture is scrolled, not shrunk

// Make the boxes of the picture into buttons that show a table in the inspector.
//
// Returns a function that marks the variables in a Map of evidence.
export function enlivenPicture(svg, inspector, network) {
  const boxes = [...svg.querySelectorAll("g[data-variable]")];
  const arcs = [...svg.querySelectorAll("[data-arc]")];
  const width = svg.width.baseVal.value;
  svg.style.cssText += `; width: 100%; max-width: ${width}px; min-width: ${SMALLEST * width}px`;
  svg.setAttribute("role", "group");
  boxes.forEach((box, i) => {
    box.setAttribute("role", "button");
    box.setAttribute("aria-label", network.variables[i].name);
    box.addEventListener("click", () => choose(i));
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(i);
    });
  });
  letRoam(svg, boxes);

  function choose(i) {
    const again = boxes[i].classList.contains("chosen");
    for (const box of boxes) box.classList.remove("chosen");
    for (const arc of arcs) arc.classList.toggle("chosen", !again && touches(arc, i));
    svg.classList.toggle("choosing", !again);
    if (!again) boxes[i].classList.add("chosen");
    inspector.replaceChildren(...(again ? [] : inspect(network, i)));
  }

  return (evidence) => {
    boxes.forEach((box, i) => box.classList.toggle("observed", evidence.has(i)));
  };
}

function touches(arc, i) {
  return arc.dataset.arc.split(" ").map(Number).includes(i);
}

function inspect(network, i) {
  const children = network.parents.flatMap((family, child) => (family.includes(i) ? [child] : []));
  const parts = [make("h3", {}, ...describeTable(network, i)), buildTable(network, i)];
  if (children.length > 0) {
    const names = children.flatMap((child, place) => [
      place ? ", " : "Parent of ",
      makeName(network.variables[child].name),
    ]);
    parts.push(make("p", { class: "small" }, ...names));
  }
  return parts;
}
