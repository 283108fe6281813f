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

// A probability that may be very small, given as its logarithm.
export function small(logProbability) {
  const exponent = Math.floor(logProbability / Math.LN10);
  if (exponent >= -4) return Math.exp(logProbability).toPrecision(4);
  const digits = Math.exp(logProbability - exponent * Math.LN10);
  return `${digits.toFixed(2)}e${exponent}`;
}

// A number with its sign, and a true minus.
export function signed(value) {
  const text = Math.abs(value).toFixed(2);
  return `${value < 0 && text !== "0.00" ? "\u2212" : "+"}${text}`;
}

// Odds of a log margin, as in 3.6 : 1 or 1 : 20.
export function odds(logMargin) {
  const size = Math.abs(logMargin) / Math.LN10;
  const ratio = size <= 6 ? Number((10 ** size).toPrecision(3)).toString() : `1e${size.toFixed(0)}`;
  return logMargin >= 0 ? `${ratio} : 1` : `1 : ${ratio}`;
}

// A name that can be seen, even where there is nothing to see.
export function label(name) {
  return /^[\p{C}\p{Z}]*$/u.test(name) ? "(blank)" : name;
}

const NUMBER = String.raw`[-+]?(?:[\d.]+(?:e[-+]?\d+)?|inf)`;
const HALF_LINE = new RegExp(`^(?:<=|>) ${NUMBER}$`);
const INTERVAL = new RegExp(`^\\(${NUMBER}, ${NUMBER}\\]$`);

// What stands between a variable and its state: colour = red, age > 40, age in (20, 40].
export function relation(state) {
  const first = state.split(" or ")[0];
  if (HALF_LINE.test(first)) return " ";
  return INTERVAL.test(first) ? " in " : " = ";
}
