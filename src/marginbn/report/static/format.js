// Numbers and names as they are shown.

// A probability in per cent with one decimal; tiny or nearly certain does not read as 0 or 100.
export function percent(probability) {
  const text = (100 * probability).toFixed(1);
  if (text === "0.0" && probability > 0) return "< 0.1 %";
  if (text === "100.0" && probability < 1) return "> 99.9 %";
  return `${text} %`;
}

// A probability with three decimals, for tables.
export function decimal(probability) {
  const text = probability.toFixed(3);
  if (text === "0.000" && probability > 0) return "<.001";
  if (text === "1.000" && probability < 1) return ">.999";
  return text;
}

// A change of a probability in percentage points, with its sign and a true minus.
export function points(change) {
  const text = Math.abs(100 * change).toFixed(1);
  return `${change < 0 && text !== "0.0" ? "\u2212" : "+"}${text}`;
}

// The heading of columns that are folded.
export function moreColumns(count) {
  return count === 1 ? "1 more column" : `${count} more columns`;
}

// A name that can be seen, even where there is nothing to see.
export function label(name) {
  return /^[\p{C}\p{Z}]*$/u.test(name) ? "(blank)" : name;
}

const NUMBER = String.raw`[-+]?(?:[\d.]+(?:e[-+]?\d+)?|inf)`;
const HALF_LINE = new RegExp(`^(?:<=|>) ${NUMBER}$`);
const INTERVAL = new RegExp(`^\\(${NUMBER}, ${NUMBER}\\]$`);

// What is written between a variable and its state: colour = red, age > 40, age in (20, 40].
export function relation(state) {
  const first = state.split(" or ")[0];
  if (HALF_LINE.test(first)) return " ";
  return INTERVAL.test(first) ? " in " : " = ";
}
