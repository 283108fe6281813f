// Factors: functions of a few variables, kept as logarithms.
//
// A factor is {scope, values}: the scope lists variables in increasing order, the values run over
// their joint states, the last variable fastest. Logarithms are kept throughout, because a product
// of many probabilities leaves the range of a number.

// Number of joint states.
export function countCells(scope, arities) {
  return scope.reduce((cells, variable) => cells * arities[variable], 1);
}

// How far apart in an array the states of each variable are, for axes in the given order.
export function stridesOf(axes, arities) {
  const strides = new Map();
  let stride = 1;
  for (const variable of [...axes].reverse()) {
    strides.set(variable, stride);
    stride *= arities[variable];
  }
  return strides;
}

// For every joint state of the scope its place in an array with these strides; variables that the
// array does not know make no difference.
function placesIn(strides, scope, arities, first = 0) {
  let places = Uint32Array.of(first);
  for (const variable of scope) {
    const stride = strides.get(variable) ?? 0;
    const finer = new Uint32Array(places.length * arities[variable]);
    let next = 0;
    for (const place of places) {
      for (let state = 0; state < arities[variable]; state++) finer[next++] = place + state * stride;
    }
    places = finer;
  }
  return places;
}

// The part of a log table that agrees with the evidence; axes name the table's axes in any order.
export function condition(axes, table, evidence, arities) {
  const strides = stridesOf(axes, arities);
  const scope = axes.filter((v) => !evidence.has(v)).sort((a, b) => a - b);
  let first = 0;
  for (const variable of axes) {
    if (evidence.has(variable)) first += evidence.get(variable) * strides.get(variable);
  }
  const places = placesIn(strides, scope, arities, first);
  return { scope, values: Float64Array.from(places, (place) => table[place]) };
}

// Product of factors over the union of their scopes; of none, the constant one.
export function multiply(factors, arities) {
  const scope = [...new Set(factors.flatMap((f) => f.scope))].sort((a, b) => a - b);
  const values = new Float64Array(countCells(scope, arities));
  for (const factor of factors) {
    const places = placesIn(stridesOf(factor.scope, arities), scope, arities);
    for (let cell = 0; cell < values.length; cell++) values[cell] += factor.values[places[cell]];
  }
  return { scope, values };
}

// log f / g on the scope they share. Where g is zero so is f, and 0 / 0 stands for 0.
export function divide(factor, divisor) {
  const values = factor.values.map((value, cell) =>
    divisor.values[cell] === -Infinity ? -Infinity : value - divisor.values[cell],
  );
  return { scope: factor.scope, values };
}

// Sum over all variables that are not in the scope.
export function sumTo(scope, factor, arities) {
  const places = placesIn(stridesOf(scope, arities), factor.scope, arities);
  return { scope, values: addUp(factor.values, places, countCells(scope, arities)) };
}

// log sum exp of the values that go to the same place, with the peak taken out first.
function addUp(logValues, places, cells) {
  const peaks = new Float64Array(cells).fill(-Infinity);
  logValues.forEach((value, cell) => {
    if (value > peaks[places[cell]]) peaks[places[cell]] = value;
  });
  const sums = new Float64Array(cells);
  logValues.forEach((value, cell) => {
    if (value > -Infinity) sums[places[cell]] += Math.exp(value - peaks[places[cell]]);
  });
  return sums.map((sum, cell) => (sum > 0 ? Math.log(sum) + peaks[cell] : -Infinity));
}
