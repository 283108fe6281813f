// The picture of the arcs between columns: boxes with the probabilities of their states. The class,
// which points at the columns, is left out. A name that is pressed shows the table of its column.

import { entriesOf } from "./cards.js";
import { draw, make, makeButton, makeName } from "./elements.js";
import { decimal, label, percent } from "./format.js";

const MOST_ROWS = 200; // of a table
const READABLE = 0.62; // below this scale a picture is not shrunk, but scrolls
const TALLEST = 700; // pixels of a picture that is shrunk to fit; CSS has the same limit

// Build the picture into a place of the page. Returns a function that shows posteriors and marks the
// variables in a Map of evidence.
export function buildPicture(place, inspector, network, picture) {
  const boxes = picture.variables.map((i, k) => buildBox(network.variables[i], i, picture, k, () => choose(i)));
  const arcs = buildArcs(picture);
  const content = make("div", { class: "content" }, arcs, ...boxes.map(({ box }) => box));
  content.style.width = `${picture.width}px`;
  content.style.height = `${picture.height}px`;
  place.append(content);
  const scale = () => Math.min(place.clientWidth / picture.width, TALLEST / picture.height, 1);
  const fit = () => (content.style.zoom = Math.max(scale(), READABLE));
  new ResizeObserver(fit).observe(place);

  function choose(i) {
    const again = inspector.dataset.variable === String(i);
    inspector.dataset.variable = again ? "" : i;
    for (const { box, head } of boxes) {
      const isChosen = !again && box.dataset.variable === String(i);
      box.classList.toggle("chosen", isChosen);
      head.setAttribute("aria-expanded", String(isChosen));
    }
    for (const arc of arcs.children) {
      arc.classList.toggle("chosen", !again && arc.dataset.arc.split(" ").includes(String(i)));
    }
    inspector.replaceChildren(...(again ? [] : [make("h3", {}, ...nameTable(network, i)), buildTable(network, i)]));
  }

  return (evidence, posteriors, prior) => {
    for (const { box, lines } of boxes) {
      const i = Number(box.dataset.variable);
      box.classList.toggle("observed", evidence.has(i));
      const entries = entriesOf(network.variables[i], posteriors?.[i], prior?.[i], evidence.get(i));
      showLines(lines, entries);
    }
  };
}

function buildArcs({ width, height, arcs }) {
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  for (const { parent, child, path } of arcs) {
    const end = path.split(" ").at(-1);
    const group = draw("g", { class: "arc", "data-arc": `${parent} ${child}` });
    group.append(draw("path", { d: path }), draw("path", { class: "tip", d: `M${end} l-4,-9 h8 z` }));
    svg.append(group);
  }
  return svg;
}

function buildBox(variable, i, { boxes, lines }, k, choose) {
  const [left, top, width, height] = boxes[k];
  const head = makeButton({ class: "head", title: variable.name, "aria-expanded": "false" }, choose);
  head.append(make("bdi", {}, label(variable.name)));
  const views = Array.from({ length: lines[k] }, () => {
    const lane = make("span", { class: "lane", "aria-hidden": "true" }, make("i"));
    return make("div", { class: "line" }, make("span", { class: "name" }), lane, make("span", { class: "number" }));
  });
  const box = make("div", { class: "box", "data-variable": i, role: "group", "aria-label": variable.name });
  Object.assign(box.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
  box.append(head, ...views);
  return { box, head, lines: views };
}

// The groups that a box has lines for: all, or the most probable ones in their own order.
function showLines(lines, entries) {
  const places = [...entries.keys()];
  const byShare = places.sort((a, b) => (entries[b].probability ?? 0) - (entries[a].probability ?? 0) || a - b);
  const shown = byShare.slice(0, lines.length).sort((a, b) => a - b);
  lines.forEach((line, k) => {
    const { name, probability } = entries[shown[k]];
    line.title = name;
    line.firstChild.textContent = label(name);
    line.style.setProperty("--p", probability ?? 0);
    line.lastChild.textContent = probability === undefined ? "–" : percent(probability);
  });
}

// P(column | class, parents) in words.
function nameTable(network, i) {
  const names = network.parents[i].map((p) => makeName(network.variables[p].name));
  const given = names.flatMap((name, place) => [place ? ", " : " | ", name]);
  return ["P(", makeName(network.variables[i].name), ...given, ")"];
}

// The table of a variable: a row per joint state of its parents, a column per group of states.
function buildTable(network, i) {
  const { groups } = network.variables[i];
  const parents = network.parents[i].map((p) => makeName(network.variables[p].name));
  const heads = [...parents, ...groups.map(({ name }) => makeName(name))];
  const count = network.logTables[i].length / network.arities[i];
  const rows = Array.from({ length: Math.min(count, MOST_ROWS) }, (_, row) => buildRow(network, i, row));
  const head = make("thead", {}, make("tr", {}, ...heads.map((name) => make("th", { scope: "col" }, name))));
  const table = make("table", { class: "heat" }, head, make("tbody", {}, ...rows));
  const wrapper = make("div", { class: "scroll", tabindex: "0" }, table);
  if (count > MOST_ROWS) wrapper.append(make("p", { class: "small" }, `The first ${MOST_ROWS} of ${count} rows`));
  return wrapper;
}

function buildRow(network, i, row) {
  const arity = network.arities[i];
  const heads = parentStates(network, i, row).map((s) => make("th", { scope: "row" }, makeName(s)));
  const values = network.logTables[i].subarray(row * arity, (row + 1) * arity);
  const cells = network.variables[i].groups.map(({ states }) => {
    const probability = states.reduce((sum, s) => sum + Math.exp(values[s]), 0);
    const cell = make("td", {}, decimal(probability));
    cell.style.setProperty("--p", probability);
    return cell;
  });
  return make("tr", {}, ...heads, ...cells);
}

// States of the parents in a row of the table; the last parent runs fastest.
function parentStates(network, i, row) {
  const states = [];
  let rest = row;
  for (const parent of [...network.parents[i]].reverse()) {
    const names = network.variables[parent].states;
    states.unshift(names[rest % names.length]);
    rest = Math.floor(rest / names.length);
  }
  return states;
}
