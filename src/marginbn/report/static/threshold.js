// Two classes: from which probability on should a case be called the second one? A slider over the
// held-out rows, with recall, precision and confusion at the threshold.

import { make, makeName } from "./elements.js";
import { percent } from "./format.js";

// above[t] are the rows with a probability above t per cent, of the second class and of the first;
// totals are all rows of both.
export function buildThreshold(place, { name, states }, { above, totals }) {
  const [first, second] = states;
  const [all, none] = totals;
  const slider = make("input", { type: "range", id: "cut", min: 0, max: 100, step: 1, value: 50 });
  const words = make("p", { role: "status" });
  const body = make("tbody");
  const head = ["predicted", makeName(second), makeName(first)].map((n) => make("th", { scope: "col" }, n));
  const table = make("table", { class: "numbers" }, make("thead", {}, make("tr", {}, ...head)), body);
  const caption = make("label", { for: "cut" });

  function show() {
    const [hits, false_] = above[slider.value];
    const share = (part, whole) => (whole > 0 ? percent(part / whole) : "–");
    const right = hits + none - false_;
    caption.replaceChildren("Predict ", makeName(name), " = ", makeName(second), ` above ${slider.value} %`);
    words.replaceChildren(
      make("b", {}, share(hits, all)), " of ", makeName(second), " are found (recall); ",
      make("b", {}, share(hits, hits + false_)), " of those predicted ", makeName(second),
      " are right (precision); ", make("b", {}, share(right, all + none)), " of all rows are right.",
    );
    body.replaceChildren(
      row(["truly ", makeName(second)], hits, all - hits),
      row(["truly ", makeName(first)], false_, none - false_),
    );
  }
  slider.addEventListener("input", show);
  const note = "At 50 % it is the prediction of the classifier.";
  place.append(make("h3", {}, "Where to draw the line?"), caption, slider, words, table);
  place.append(make("p", { class: "small" }, note));
  show();
}

function row(words, ...counts) {
  const cells = counts.map((count) => make("td", {}, String(count)));
  return make("tr", {}, make("th", { scope: "row" }, ...words), ...cells);
}
