// The picture of the network: boxes with the probabilities of their states, which can be moved and
// zoomed. The class is always in view: a label above the picture shows it whatever is below.
//
// The picture is one stop of the Tab key; left and right go from variable to variable, up and down
// through the states.

import { byProbability } from "./classes.js";
import { draw, make, makeButton, makeName } from "./elements.js";
import { letRoam } from "./focus.js";
import { label, percent } from "./format.js";
import { buildTable, describeTable } from "./tables.js";
import { STEP, Viewport } from "./viewport.js";

const READABLE = 0.62; // below this scale a picture is not shrunk, but begins with the class
const FIRST_SCALE = 0.8;
const LEAST_HEIGHT = 220;
const PAPER = { width: 680, height: 880 }; // pixels of a printed page, about

// Build the picture into a place of the page.
//
// toggle(variable, state) is called when a state is pressed. Returns a function that shows
// posteriors and marks the variables in a Map of evidence.
export function buildPicture(place, inspector, network, picture, toggle) {
  const arcs = buildArcs(picture);
  const boxes = network.variables.map((variable, i) =>
    buildBox(variable, i, picture, () => choose(i), toggle),
  );
  const content = make("div", { class: "content" }, arcs.svg, ...boxes.map(({ box }) => box));
  content.style.width = `${picture.width}px`;
  content.style.height = `${picture.height}px`;
  const frame = make("div", { class: "viewport", role: "group", "aria-label": "The network" }, content);
  const pinned = makeButton({ class: "pinned", title: "Show the class" }, () => {
    viewport.centre(boxOf(picture, 0));
  });
  const viewport = new Viewport(frame, content, picture);
  const tools = make("div", { class: "tools" }, pinned, buildButtons(viewport));
  place.append(make("div", { class: "stage" }, tools, frame));

  function begin() {
    const room = Math.min(window.innerHeight * 0.72, 760);
    const scale = Math.max(Math.min(frame.clientWidth / picture.width, 1), READABLE);
    frame.style.height = `${Math.max(Math.min(picture.height * scale + 8, room), LEAST_HEIGHT)}px`;
    if (viewport.fitting >= READABLE) viewport.fit();
    else viewport.centre(boxOf(picture, 0), Math.max(viewport.fitting, FIRST_SCALE));
  }

  const members = boxes.flatMap(({ head, lines }) => [head, ...lines.map(({ button }) => button)]);
  const columnOf = (member) => Number(member.closest("[data-variable]").dataset.variable);
  letRoam(frame, () => members, columnOf);
  frame.addEventListener("focusin", (event) => {
    const box = event.target.closest("[data-variable]");
    if (box && event.target.matches(":focus-visible")) {
      viewport.reveal(boxOf(picture, Number(box.dataset.variable)));
    }
  });

  function choose(i) {
    const again = boxes[i].box.classList.contains("chosen");
    boxes.forEach(({ box, head }, k) => {
      box.classList.toggle("chosen", !again && k === i);
      head.setAttribute("aria-expanded", String(!again && k === i));
    });
    arcs.svg.classList.toggle("choosing", !again);
    for (const { parent, child, drawn } of arcs.list) {
      drawn.classList.toggle("chosen", !again && (parent === i || child === i));
    }
    inspector.replaceChildren(...(again ? [] : inspect(network, i)));
  }

  let width = 0;
  new ResizeObserver(() => {
    if (frame.clientWidth !== width) begin();
    width = frame.clientWidth;
  }).observe(frame);
  window.addEventListener("beforeprint", () => {
    const scale = Math.min(PAPER.width / picture.width, PAPER.height / picture.height, 1);
    frame.style.height = `${picture.height * scale}px`;
    content.style.transform = "none"; // pages are cut by the size before a transform
    content.style.zoom = scale;
  });
  window.addEventListener("afterprint", () => {
    content.style.zoom = "";
    begin();
  });

  return (evidence, posteriors) => {
    boxes.forEach((view, i) => showBox(view, network.variables[i], posteriors?.[i], evidence.get(i)));
    showPinned(pinned, network.variables[0], posteriors?.[0]);
  };
}

function boxOf({ boxes }, i) {
  const [left, top, width, height] = boxes[i];
  return { left, top, width, height };
}

function buildArcs({ width, height, arcs, separator }) {
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const list = arcs.map(({ parent, child, path, faint }) => {
    const end = path.split(" ").at(-1);
    const group = draw("g", { class: faint ? "arc faint" : "arc", "data-arc": `${parent} ${child}` });
    group.append(draw("path", { d: path }), draw("path", { class: "tip", d: `M${end} l-4,-9 h8 z` }));
    svg.append(group);
    return { parent, child, drawn: group };
  });
  if (separator !== null) {
    svg.append(
      draw("path", { class: "separator", d: `M0,${separator} H${width}` }),
      draw("text", { x: 14, y: separator + 15 }, "no arcs: without influence"),
    );
  }
  return { svg, list };
}

function buildBox(variable, i, { boxes, lines }, choose, toggle) {
  const [left, top, width, height] = boxes[i];
  const head = makeButton({ class: "head", title: variable.name, "aria-expanded": "false" }, choose);
  head.append(make("bdi", {}, label(variable.name)));
  const views = Array.from({ length: lines[i] }, () => {
    const view = { state: 0 };
    const parts = ["name", "lane", "number"].map((part) => make("span", { class: part }));
    parts[1].append(make("i"));
    view.button = makeButton({ class: "line", "aria-pressed": "false" }, () => toggle(i, view.state), ...parts);
    return view;
  });
  const box = make("div", { class: i === 0 ? "box class" : "box", "data-variable": i, role: "group" });
  box.setAttribute("aria-label", variable.name);
  Object.assign(box.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
  box.append(head, ...views.map(({ button }) => button));
  return { box, head, lines: views };
}

// The states that a box has lines for: all, or the most probable ones in their own order.
export function statesShown(posterior, count, observed) {
  const places = [...posterior.keys()];
  if (posterior.length <= count) return places;
  const first = byProbability(posterior).slice(0, count);
  if (observed !== undefined && !first.includes(observed)) first[count - 1] = observed;
  return first.sort((a, b) => a - b);
}

function showBox({ box, lines }, variable, posterior, observed) {
  box.classList.toggle("observed", observed !== undefined);
  const states = posterior ? statesShown(posterior, lines.length, observed) : lines.map((_, k) => k);
  lines.forEach((view, k) => {
    view.state = states[k];
    const [name, lane, number] = view.button.children;
    const probability = posterior?.[view.state];
    name.textContent = label(variable.states[view.state]);
    view.button.title = variable.states[view.state];
    view.button.setAttribute("aria-pressed", String(observed === view.state));
    lane.firstChild.style.setProperty("--p", probability ?? 0);
    number.textContent = probability === undefined ? "–" : percent(probability);
  });
}

function showPinned(pinned, { name, states }, posterior) {
  if (!posterior) return pinned.replaceChildren(makeName(name), ": –");
  const likeliest = byProbability(posterior)[0];
  const words = [makeName(name), " = ", makeName(states[likeliest]), `: ${percent(posterior[likeliest])}`];
  return pinned.replaceChildren(...words);
}

function buildButtons(viewport) {
  const button = (text, name, act) => makeButton({ "aria-label": name, title: name }, act, text);
  return make(
    "div",
    { class: "zoom" },
    button("+", "Zoom in", () => viewport.zoom(STEP)),
    button("−", "Zoom out", () => viewport.zoom(1 / STEP)),
    button("Fit", "Show the whole network", () => viewport.fit()),
  );
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
