// Numbers and names as they are shown.

// A probability in per cent with two decimals; tiny or nearly certain does not read as 0 or 100.
export function percent(probability) {
  const text = (100 * probability).toFixed(2);
  if (text === "0.00" && probability > 0) return "< 0.01 %";
  if (text === "100.00" && probability < 1) return "> 99.99 %";
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

// A name that can be seen, even where there is nothing to see.
export function label(name) {
  return /^[\p{C}\p{Z}]*$/u.test(name) ? "(blank)" : name;
}
