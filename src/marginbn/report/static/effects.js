// What each state of a feature does to the log odds of a class, with a band and the rows behind it.
//
// Bins of a number make a curve; other states have a bar each. All features share one scale.

import { draw, make, makeButton, makeName } from "./elements.js";
import { label, signed } from "./format.js";

const FIRST_EFFECTS = 6;
const LARGEST = 6; // log odds at the ends of the scale at most
const WIDTH = 340;
const SIDES = { left: 34, right: 8, top: 10, plot: 118, gap: 6, rows: 26, bottom: 20 };
const MOST_BARS = 15; // states of a category that are shown

// effects[k] belongs to feature k + 1: values, low and high by class and state, counts by state.
export function buildEffects(place, network, effects, order) {
  const { states } = network.variables[0];
  const select = make("select", { id: "effect-class" });
  select.append(...states.map((state, c) => make("option", { value: c }, label(state))));
  select.value = states.length === 2 ? 1 : 0;
  const list = make("div", { class: "effects" });
  let most = FIRST_EFFECTS;
  const more = makeButton({ class: "more" }, () => {
    most = order.length;
    show();
  }, `All ${order.length} features`);

  function show() {
    const c = Number(select.value);
    const scale = largest(effects, c);
    const cards = order.slice(0, most).map((i) => buildCard(network.variables[i], i, effects[i - 1], c, scale));
    list.replaceChildren(...cards);
    more.hidden = most >= order.length;
  }
  select.addEventListener("change", show);
  const chooser = make("label", { for: "effect-class", class: "chooser" }, "Log odds of ");
  chooser.append(makeName(network.variables[0].name), " = ", select);
  place.append(chooser, list, more);
  show();

  function buildCard(variable, i, effect, c, scale) {
    const one = pick(effect, c);
    const isCurve = variable.cuts && variable.cuts.length > 0;
    const figure = isCurve ? drawCurve(variable, one, scale) : buildBars(variable, one, scale);
    return make("figure", { class: "card effect", "data-variable": i }, make("h3", {}, makeName(variable.name)), figure);
  }
}

function pick({ values, low, high, counts }, c) {
  return { values: values[c], low: low?.[c], high: high?.[c], counts };
}

// Half the length of the scale: no effect of the class is larger, within reason.
export function largest(effects, c) {
  const sizes = effects.flatMap(({ values }) => values[c].map(Math.abs));
  return Math.min(Math.max(0.5, ...sizes) * 1.08, LARGEST);
}

function describeEffect(name, { values, low, high, counts }, s) {
  const band = low ? ` (${signed(low[s])} to ${signed(high[s])})` : "";
  const rows = counts ? `, ${counts[s]} row${counts[s] === 1 ? "" : "s"}` : "";
  return `${label(name)}: ${signed(values[s])}${band}${rows}`;
}

// --- bins of a number ---

function drawCurve(variable, effect, scale) {
  const { states, cuts } = variable;
  const { left, right, top, plot, gap, rows, bottom } = SIDES;
  const base = top + plot + gap + rows;
  const bins = cuts.length + 1;
  const apart = states.length > bins ? 10 : 0; // a missing value stands apart
  const width = (WIDTH - left - right - apart) / states.length;
  const x = (s) => left + s * width + (s >= bins ? apart : 0);
  const y = (value) => top + (plot / 2) * (1 - Math.max(-1, Math.min(1, value / scale)));
  const svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${base + bottom}`, class: "chart curve", role: "img" });
  svg.append(draw("title", {}, summarise(variable, effect)));
  for (const value of ticks(scale)) {
    svg.append(
      draw("path", { class: value === 0 ? "zero" : "grid", d: `M${left},${y(value)} H${WIDTH - right}` }),
      draw("text", { x: left - 5, y: y(value) + 4, "text-anchor": "end" }, tickText(value)),
    );
  }
  const runs = states.length > bins ? [[0, bins], [bins, states.length]] : [[0, bins]];
  for (const [from, to] of runs) {
    const step = (numbers) => range(from, to).flatMap((s) => [[x(s), y(numbers[s])], [x(s) + width, y(numbers[s])]]);
    if (effect.low) svg.append(draw("path", { class: "band", d: `${path([...step(effect.high), ...step(effect.low).reverse()])} Z` }));
    svg.append(draw("path", { class: "line effect-line", d: path(step(effect.values)) }));
  }
  const mostRows = Math.max(1, ...(effect.counts ?? []));
  states.forEach((name, s) => {
    const height = effect.counts ? (rows * effect.counts[s]) / mostRows : 0;
    const bar = { x: x(s) + 0.5, y: base - height, width: Math.max(width - 1, 0.5), height };
    const area = draw("rect", { x: x(s), y: top, width, height: base - top, class: "area" });
    area.append(draw("title", {}, describeEffect(name, effect, s)));
    svg.append(draw("rect", { ...bar, class: "rows" }), area);
  });
  svg.append(...drawCuts(cuts, x, base));
  if (apart) svg.append(draw("text", { x: x(bins) + width / 2, y: base + 14, "text-anchor": "middle" }, "?"));
  return svg;
}

// Limits of bins under their borders, as many as there is room for.
function drawCuts(cuts, x, base) {
  const parts = [];
  let free = SIDES.left - 8;
  cuts.forEach((cut, k) => {
    const text = Number(cut.toPrecision(4)).toString();
    const half = (text.length * 6.4) / 2;
    parts.push(draw("path", { class: "axis", d: `M${x(k + 1)},${base} v4` }));
    const centre = Math.min(x(k + 1), WIDTH - half);
    if (centre - half < free) return;
    free = centre + half + 6;
    parts.push(draw("text", { x: centre, y: base + 15, "text-anchor": "middle" }, text));
  });
  return parts;
}

function summarise(variable, effect) {
  const places = effect.values.map((_, s) => s).sort((a, b) => effect.values[b] - effect.values[a]);
  const [most, least] = [places[0], places.at(-1)];
  return `${label(variable.name)}. Most for: ${describeEffect(variable.states[most], effect, most)}. Most against: ${describeEffect(variable.states[least], effect, least)}`;
}

function ticks(scale) {
  const step = scale > 4 ? 3 : scale > 2 ? 2 : scale > 1 ? 1 : 0.5;
  const count = Math.floor(scale / step);
  return range(-count, count + 1).map((k) => k * step);
}

function tickText(value) {
  return value < 0 ? `−${-value}` : `${value}`;
}

function range(from, to) {
  return Array.from({ length: to - from }, (_, k) => from + k);
}

function path(points) {
  return `M${points.map(([px, py]) => `${px.toFixed(1)},${py.toFixed(1)}`).join(" L")}`;
}

// --- other states ---

function buildBars({ states }, effect, scale) {
  const order = effect.counts
    ? states.map((_, s) => s).sort((a, b) => effect.counts[b] - effect.counts[a] || a - b)
    : states.map((_, s) => s);
  const shown = order.slice(0, MOST_BARS).sort((a, b) => effect.values[b] - effect.values[a] || a - b);
  const list = make("ul", { class: "bars" }, ...shown.map((s) => buildBar(states[s], effect, s, scale)));
  if (order.length <= MOST_BARS) return list;
  return make("div", {}, list, make("p", { class: "small" }, `and ${order.length - MOST_BARS} rarer states`));
}

function buildBar(name, effect, s, scale) {
  const share = (value) => 0.5 + Math.max(-1, Math.min(1, value / scale)) / 2;
  const lane = make("span", { class: "lane", "aria-hidden": "true" });
  const bar = make("i", { class: effect.values[s] < 0 ? "against" : "for" });
  const [start, end] = [0.5, share(effect.values[s])].sort((a, b) => a - b);
  bar.style.setProperty("--start", start);
  bar.style.setProperty("--size", end - start);
  lane.append(bar);
  if (effect.low) {
    const whisker = make("b");
    whisker.style.setProperty("--start", share(effect.low[s]));
    whisker.style.setProperty("--size", share(effect.high[s]) - share(effect.low[s]));
    lane.append(whisker);
  }
  const rows = effect.counts ? [make("span", { class: "count" }, `${effect.counts[s]}`)] : [];
  const item = make("li", { title: describeEffect(name, effect, s), "data-value": effect.values[s] });
  item.append(makeName(name, { class: "name" }), lane, make("span", { class: "number" }, signed(effect.values[s])), ...rows);
  return item;
}
