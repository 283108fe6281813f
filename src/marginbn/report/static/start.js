// Put the live parts into the page.

import { buildExplorer } from "./explore.js";
import { readNetwork } from "./inference.js";
import { enlivenPicture } from "./picture.js";
import { buildTables } from "./tables.js";

const find = (id) => document.getElementById(id);

function start() {
  const values = JSON.parse(find("values").textContent);
  const network = readNetwork(values.network);
  network.variables.forEach((variable, i) => (variable.cuts = values.cuts[i]));
  const svg = document.querySelector(".picture svg");
  const mark = enlivenPicture(svg, find("inspector"), network);
  const setEvidence = buildExplorer(find("explore"), network, values.order, mark);
  buildTables(find("tables-list"), network);
  for (const button of document.querySelectorAll("[data-sample]")) {
    button.addEventListener("click", () => {
      setEvidence(values.samples[button.dataset.sample]);
      find("ask").scrollIntoView({ behavior: "smooth" });
    });
  }
  document.documentElement.dataset.ready = performance.now().toFixed(1);
}

start();
