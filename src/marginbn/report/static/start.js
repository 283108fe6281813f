// Put the live parts into the page.

import { readModel } from "./answers.js";
import { buildEffects } from "./effects.js";
import { buildExplorer } from "./explore.js";
import { readNetwork } from "./inference.js";
import { buildPicture } from "./picture.js";
import { buildThreshold } from "./threshold.js";

const find = (id) => document.getElementById(id);

function start() {
  const values = JSON.parse(find("values").textContent);
  const network = readNetwork(values.network);
  network.model = values.model && readModel(values.model);
  network.variables.forEach((variable, i) => {
    Object.assign(variable, { cuts: values.cuts[i], groups: values.groups[i] });
  });
  const { order, shown, effects } = values;
  const showPicture = find("picture")
    ? buildPicture(find("picture"), find("inspector"), network, values.picture)
    : () => {};
  let base = null;
  buildExplorer(find("explore"), network, { order, shown }, (evidence, posteriors, prior) => {
    base ??= prior?.[0];
    showPicture(evidence, posteriors, prior);
  });
  if (effects && base) buildEffects(find("effects-list"), network, effects, order, shown, base);
  if (find("threshold")) buildThreshold(find("threshold"), network.variables[0], values.threshold);
  document.documentElement.dataset.ready = performance.now().toFixed(1);
}

start();
