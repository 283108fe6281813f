// Put the live parts into the page.

import { readModel } from "./answers.js";
import { buildEffects } from "./effects.js";
import { buildExplorer } from "./explore.js";
import { readNetwork } from "./inference.js";
import { buildPicture } from "./picture.js";
import { buildTables } from "./tables.js";

const find = (id) => document.getElementById(id);

function start() {
  const values = JSON.parse(find("values").textContent);
  const network = readNetwork(values.network);
  network.model = values.model && readModel(values.model);
  network.variables.forEach((variable, i) => (variable.cuts = values.cuts[i]));
  const live = {};
  const toggle = (variable, state) => live.explorer.toggle(variable, state);
  const show = buildPicture(find("picture"), find("inspector"), network, values.picture, toggle);
  const { order, title } = values;
  const settings = { order, title, sheet: find("case-sheet") };
  live.explorer = buildExplorer(find("explore"), network, settings, show);
  if (values.effects) buildEffects(find("effects-list"), network, values.effects, values.order);
  buildTables(find("tables-list"), network);
  for (const button of document.querySelectorAll("[data-sample]")) {
    button.addEventListener("click", () => {
      live.explorer.setEvidence(values.samples[button.dataset.sample]);
      find("ask").scrollIntoView({ behavior: "smooth" });
    });
  }
  document.documentElement.dataset.ready = performance.now().toFixed(1);
}

start();
