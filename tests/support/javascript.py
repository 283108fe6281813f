"""The page's inference outside a page: in an engine from the test extra, or in Node.js."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from marginbn.network.network import BayesianNetwork
from marginbn.report.page import INFERENCE, join_scripts, network_values

# The engine alone has no atob, which every browser has.
ATOB = """
globalThis.atob ??= (text) => {
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  let bits = 0, held = 0, result = "";
  for (const c of text.replace(/=+$/, "")) {
    bits = ((bits << 6) | digits.indexOf(c)) & 0xffffff;
    held += 6;
    if (held >= 8) result += String.fromCharCode((bits >> (held -= 8)) & 255);
  }
  return result;
};
"""

ASK = """
const answer = ({ network, questions }) => {
  const read = readNetwork(network);
  return questions.map((pairs) => {
    try {
      const { logProbability, posteriors } = infer(read, new Map(pairs));
      const plain = posteriors && posteriors.map((p) => Array.from(p));
      return { logProbability: String(logProbability), posteriors: plain };
    } catch (error) {
      if (error instanceof TooLargeError) return { tooLarge: true };
      throw error;
    }
  });
};
"""


def infer_in_javascript(
    network: BayesianNetwork, questions: Sequence[Mapping[int, int]]
) -> list[dict[str, Any]]:
    """What the scripts of the page answer to evidence given as codes."""
    asked = {"network": network_values(network), "questions": [[*q.items()] for q in questions]}
    return json.loads(run_javascript(f"JSON.stringify(answer({json.dumps(asked)}))"))


def run_javascript(expression: str, *more_scripts: str) -> str:
    """Value of an expression after the scripts of the inference and some others; a text."""
    program = f"{ATOB}{join_scripts((*INFERENCE, *more_scripts))}{ASK}"
    if importlib.util.find_spec("py_mini_racer") is not None:
        from py_mini_racer import MiniRacer

        return str(MiniRacer().eval(f"(() => {{{program} return {expression};}})()"))
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs a JavaScript engine: pip install mini-racer, or Node.js")
    finished = subprocess.run(
        [node, "--input-type=module", "-"],
        input=f"{program}\nprocess.stdout.write({expression});",
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return finished.stdout
