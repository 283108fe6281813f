// Conditional tables, coloured by probability; each is built when it is first looked at.

import { make, makeButton, makeName } from "./elements.js";
import { decimal } from "./format.js";

const MOST_ROWS = 300; // longer tables are cut, with a button for the rest
const MOST_COLUMNS = 24; // more bins of a number are shown in runs of neighbours
const RUNS = 8;
const MOST_PRINTED = 6000; // cells; if all tables together have more, only open ones are printed

// One closed entry per variable.
export function buildTables(place, network) {
  const entries = network.variables.map((_, i) => buildEntry(network, i));
  place.append(...entries);
  const cells = network.logTables.reduce((total, table) => total + table.length, 0);
  window.addEventListener("beforeprint", () => {
    if (cells <= MOST_PRINTED) for (const entry of entries) entry.open = true;
    for (const entry of entries) if (entry.open) fill(entry, network);
  });
}

function buildEntry(network, i) {
  const summary = make("summary", {}, ...describeTable(network, i));
  const entry = make("details", { "data-variable": i }, summary);
  entry.addEventListener("toggle", () => entry.open && fill(entry, network));
  return entry;
}

function fill(entry, network) {
  if (entry.childElementCount === 1) entry.append(buildTable(network, Number(entry.dataset.variable)));
}

// P(variable | parents) in words.
export function describeTable(network, i) {
  const names = network.parents[i].map((p) => makeName(network.variables[p].name));
  const given = names.flatMap((name, place) => [place ? ", " : " | ", name]);
  return ["P(", makeName(network.variables[i].name), ...given, ")"];
}

// The table of a variable: a row per joint state of its parents.
export function buildTable(network, i) {
  const body = make("tbody");
  const rows = network.logTables[i].length / network.arities[i];
  const wrapper = make("div", { class: "scroll", tabindex: "0" });
  wrapper.append(make("table", { class: "heat" }, buildHead(network, i), body));
  appendRows(body, network, i, 0, Math.min(rows, MOST_ROWS));
  if (rows > MOST_ROWS) wrapper.append(buildMore(body, network, i, rows));
  return wrapper;
}

// The columns of a table: names, and which states each stands for, from start to before end.
export function columnsOf({ states, cuts }) {
  if (!cuts || states.length <= MOST_COLUMNS) {
    return states.map((name, s) => ({ name, start: s, end: s + 1 }));
  }
  const edges = Array.from({ length: RUNS + 1 }, (_, k) => Math.floor((k * states.length) / RUNS));
  return edges.slice(1).map((end, k) => ({ name: nameRun(cuts, edges[k], end), start: edges[k], end }));
}

function nameRun(cuts, start, end) {
  const [low, high] = [cuts[start - 1], cuts[end - 1]].map((cut) => cut && Number(cut.toPrecision(5)));
  if (start === 0) return `<= ${high}`;
  return end > cuts.length ? `> ${low}` : `(${low}, ${high}]`;
}

function buildHead(network, i) {
  const parents = network.parents[i].map((p) => makeName(network.variables[p].name));
  const heads = [...parents, ...columnsOf(network.variables[i]).map(({ name }) => makeName(name))];
  return make("thead", {}, make("tr", {}, ...heads.map((name) => make("th", { scope: "col" }, name))));
}

function buildMore(body, network, i, rows) {
  const text = `Show all ${rows} rows`;
  const more = makeButton({ class: "more" }, () => {
    appendRows(body, network, i, MOST_ROWS, rows);
    more.remove();
  }, text);
  return more;
}

function appendRows(body, network, i, first, end) {
  for (let row = first; row < end; row++) body.append(buildRow(network, i, row));
}

function buildRow(network, i, row) {
  const arity = network.arities[i];
  const heads = parentStates(network, i, row).map((s) => make("th", { scope: "row" }, makeName(s)));
  const values = network.logTables[i].subarray(row * arity, (row + 1) * arity);
  const cells = columnsOf(network.variables[i]).map(({ start, end }) => {
    const probability = values.subarray(start, end).reduce((sum, value) => sum + Math.exp(value), 0);
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
