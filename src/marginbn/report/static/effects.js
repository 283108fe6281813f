// What each value of a column, known alone, makes of the probability of a class.
//
// Numbers have a curve over their true values, with the density of the training values below it;
// categories have a bar each. All columns share the scale of probabilities.

import { draw, make, makeButton, makeName } from "./elements.js";
import { label, moreColumns, percent } from "./format.js";

const FIRST_EFFECTS = 6;
const FIRST_RANKS = 8;
const MOST_BARS = 8; // states of a category that are shown
const [WIDTH, HEIGHT] = [340, 214];
const SIDES = { left: 46, right: 10, top: 10, bottom: 40, density: 32, missing: 34 };
const TOPS = [0.02, 0.05, 0.1, 0.2, 0.5, 1];

// effects[k] belongs to feature k + 1: points, values, low and high by class and state, counts by
// state, and the axis of a number. base is the probability of each class with nothing known.
export function buildEffects(place, network, effects, order, shown, base) {
  const { name, states } = network.variables[0];
  const select = make("select", { id: "effect-class" });
  select.append(...states.map((state, c) => make("option", { value: c }, label(state))));
  select.value = shown;
  const chooser = make("label", { for: "effect-class", class: "search" }, "Probability of ");
  chooser.append(makeName(name), " = ", select);
  const list = make("div", { class: "effects" });
  let most = FIRST_EFFECTS;
  const more = makeButton({ class: "more" }, () => {
    most = order.length;
    show();
  }, `All ${order.length} columns`);

  function show() {
    const c = Number(select.value);
    const top = topOf(effects, order, c);
    const title = `P(${label(name)} = ${label(states[c])}), %`;
    const figures = order.slice(0, most).map((i) => {
      const variable = network.variables[i];
      const { values, low, high, counts, axis } = effects[i - 1];
      const effect = { values: values[c], low: low[c], high: high[c], counts, axis, base: base[c] };
      const chart = axis ? drawCurve(variable, effect, top, title) : buildBars(variable, effect, top);
      const heading = make("h3", {}, makeName(variable.name));
      return make("figure", { class: "card effect", "data-variable": i }, heading, chart);
    });
    list.replaceChildren(...figures);
    more.hidden = most >= order.length;
  }
  select.addEventListener("change", show);
  place.append(...buildRanking(network, effects, order), chooser, list, more);
  show();
}

// The columns by how far they move the probability on average.
function buildRanking(network, effects, order) {
  const largest = Math.max(...order.map((i) => effects[i - 1].points), 1e-9);
  const line = (i) => {
    const { points } = effects[i - 1];
    const lane = make("span", { class: "lane", "aria-hidden": "true" }, make("i"));
    lane.style.setProperty("--p", points / largest);
    const number = make("span", { class: "number" }, (100 * points).toFixed(1));
    return make("li", { "data-points": points }, makeName(network.variables[i].name), lane, number);
  };
  const list = (members) => make("ol", { class: "ranking" }, ...members.map(line));
  const words =
    "What decides: points (percentage points) by which knowing a column alone moves the probability, on average.";
  const parts = [make("p", {}, words), list(order.slice(0, FIRST_RANKS))];
  if (order.length > FIRST_RANKS) {
    const summary = make("summary", {}, moreColumns(order.length - FIRST_RANKS));
    parts.push(make("details", { class: "fold" }, summary, list(order.slice(FIRST_RANKS))));
  }
  return parts;
}

// Upper end of the scale: the smallest that no value of the class exceeds.
export function topOf(effects, order, c) {
  const largest = Math.max(...order.flatMap((i) => effects[i - 1].values[c]));
  return TOPS.find((top) => top >= largest) ?? 1;
}

function describeEffect(name, { values, low, high, counts }, s) {
  return `${label(name)}: ${percent(values[s])} (${percent(low[s])} to ${percent(high[s])}), ${rows(counts[s])}`;
}

const rows = (count) => `${count} row${count === 1 ? "" : "s"}`;

// --- numbers ---

function drawCurve(variable, effect, top, title) {
  const { states, cuts } = variable;
  const [low, high, heights] = effect.axis;
  const { left, right, top: above, bottom, density, missing } = SIDES;
  const bins = cuts.length + 1;
  const end = WIDTH - right - (states.length > bins ? missing : 0);
  const floor = HEIGHT - bottom;
  const x = (value) => left + ((Math.min(Math.max(value, low), high) - low) / (high - low)) * (end - left);
  const y = (p) => floor - density - (Math.min(p, top) / top) * (floor - density - above);
  const svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img" });
  svg.append(draw("title", {}, `${label(variable.name)}: ${title}`));
  for (const p of [0, top / 2, top]) {
    svg.append(
      draw("path", { class: "grid", d: `M${left},${y(p)} H${WIDTH - right}` }),
      text(Number((100 * p).toPrecision(3)), left - 5, y(p) + 4, "end"),
    );
  }
  const width = (end - left) / heights.length;
  heights.forEach((height, k) => {
    const size = { width: Math.max(width - 0.5, 0.5), height: (density - 4) * height };
    svg.append(draw("rect", { x: left + k * width, y: floor - size.height, ...size, class: "rows" }));
  });
  const spans = states.map((_, s) =>
    s < bins ? [x(cuts[s - 1] ?? low), x(cuts[s] ?? high)] : [end + 8, WIDTH - right],
  );
  const outline = (numbers, from, to) =>
    spans.slice(from, to).flatMap((span, k) => span.map((px) => [px, y(numbers[from + k])]));
  for (const [from, to] of [[0, bins], [bins, states.length]]) {
    if (from === to) continue;
    const band = [...outline(effect.high, from, to), ...outline(effect.low, from, to).reverse()];
    svg.append(draw("path", { class: "band", d: `${path(band)} Z` }));
    svg.append(draw("path", { class: "line curve", d: path(outline(effect.values, from, to)) }));
  }
  svg.append(draw("path", { class: "base", d: `M${left},${y(effect.base)} H${WIDTH - right}` }));
  states.forEach((name, s) => {
    const [from, to] = spans[s];
    const area = draw("rect", { x: from, y: above, width: to - from, height: floor - above, class: "area" });
    area.append(draw("title", {}, describeEffect(name, effect, s)));
    svg.append(area);
  });
  svg.append(draw("path", { class: "axis", d: `M${left},${floor} H${end}` }));
  const last = states.length > bins ? end - 14 : WIDTH; // before the word "missing"
  for (const value of ticks(low, high).filter((v) => x(v) <= last)) {
    svg.append(text(tickText(value), x(value), floor + 15, "middle"));
  }
  if (states.length > bins) svg.append(text("missing", (end + 8 + WIDTH - right) / 2, floor + 15, "middle"));
  const turned = `translate(11 ${(above + floor - density) / 2}) rotate(-90)`;
  svg.append(draw("text", { transform: turned, "text-anchor": "middle" }, title.slice(0, 32)));
  svg.append(text(label(variable.name).slice(0, 44), (left + end) / 2, HEIGHT - 6, "middle"));
  return svg;
}

function text(content, x, y, anchor) {
  return draw("text", { x, y, "text-anchor": anchor }, String(content));
}

function path(points) {
  return `M${points.map(([px, py]) => `${px.toFixed(1)},${py.toFixed(1)}`).join(" L")}`;
}

// Round values inside an interval, two to six.
export function ticks(low, high) {
  const width = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(width));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= width * (1 - 1e-9));
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, k) => (first + k) * step);
}

function tickText(value) {
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-4)) return value.toExponential(0).replace("-", "−");
  return String(Number(value.toPrecision(6))).replace("-", "−");
}

// --- categories ---

function buildBars({ states }, effect, top) {
  const order = [...states.keys()].sort((a, b) => effect.counts[b] - effect.counts[a] || a - b);
  const areNumbers = states.every((state) => Number.isFinite(Number(state)));
  const rank = (a, b) => (areNumbers ? Number(states[a]) - Number(states[b]) : effect.values[b] - effect.values[a]);
  const shown = order.slice(0, MOST_BARS).sort((a, b) => rank(a, b) || a - b);
  const list = make("ul", { class: "bars" }, ...shown.map((s) => buildBar(states[s], effect, s, top)));
  if (order.length <= MOST_BARS) return list;
  const rest = order.length - MOST_BARS;
  return make("div", {}, list, make("p", { class: "small" }, `and ${rest} rarer value${rest > 1 ? "s" : ""}`));
}

function buildBar(name, effect, s, top) {
  const share = (p) => Math.min(p / top, 1);
  const [bar, band, base] = [make("i"), make("b"), make("u")];
  bar.style.setProperty("--p", share(effect.values[s]));
  band.style.setProperty("--start", share(effect.low[s]));
  band.style.setProperty("--size", share(effect.high[s]) - share(effect.low[s]));
  base.style.setProperty("--start", share(effect.base));
  const lane = make("span", { class: "lane", "aria-hidden": "true" }, bar, band, base);
  const item = make("li", { title: describeEffect(name, effect, s), "data-value": effect.values[s] });
  const number = make("span", { class: "number" }, percent(effect.values[s]));
  const count = make("span", { class: "count" }, rows(effect.counts[s]));
  item.append(makeName(name, { class: "name" }), number, lane, count);
  return item;
}
