"""What a type checker knows: wrong options are errors, answers have types."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

pytestmark = pytest.mark.slow

WRONG = """
from marginbn import *
BNClassifier(missing="sttae")
BNClassifier(identifiers="keep")
BNClassifier(class_weight="balance")
BNClassifier(max_parents="2")
MaxMarginBNClassifier(class_arcs="some")
MaxMarginBNClassifier(margin="multi")
MaxMarginBNClassifierCV(scoring="log-loss")
GenerativeBNClassifier(score="bicc")
BayesianNetworkLearner(score="bicc")
Search(solver="branch_and_bound")
Search(rows="some")
"""
RIGHT = """
from marginbn import *
clf = BNClassifier(missing="state", identifiers="use", class_weight={"a": 2.0}, max_parents=2)
search = Search(solver="branch_cut", rows="groups")
MaxMarginBNClassifier(class_arcs="all", margin="binary", class_weight="balanced", search=search)
MaxMarginBNClassifierCV(scoring="log_loss")
BayesianNetworkLearner(score="bdeu")
reveal_type(load_model("m.json"))
reveal_type(load_model("m.json", BNClassifier))
reveal_type(load_model("m.json", BayesianNetworkLearner))
reveal_type(clf.posterior({"x": 1}))
reveal_type(clf.network_.posterior("x", {"y": 1}))
reveal_type(clf.network_.posterior(["x", "y"]))
reveal_type(clf.feature_importances_)
"""
TYPES = [
    "marginbn.classifiers.base.BaseBNClassifier",
    "marginbn.classifiers.bn_classifier.BNClassifier",
    "marginbn.classifiers.learner.BayesianNetworkLearner",
    "dict[Any, float]",
    "dict[Any, float]",
    "dict[Any, float]",
]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Lines of mypy for both programs."""
    folder = tmp_path_factory.mktemp("types")
    for name, text in (("wrong", WRONG), ("right", RIGHT)):
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    files = [str(folder / "wrong.py"), str(folder / "right.py")]
    lines = api.run([*files, "--cache-dir", str(folder / "cache"), "--follow-imports=silent"])[0]
    return {
        name: [line for line in lines.splitlines() if Path(line.split(":")[0]).stem == name]
        for name in ("wrong", "right")
    }


def test_misspelt_options_are_errors(output: dict[str, list[str]]) -> None:
    """Each line of the program but the import, once."""
    numbers = [int(line.split(":")[1]) for line in output["wrong"] if "error:" in line]
    assert numbers == list(range(3, WRONG.count("\n") + 1))
    assert all("Argument" in line for line in output["wrong"] if "error:" in line)


def test_answers_have_types(output: dict[str, list[str]]) -> None:
    """No option is refused, and nothing but labels of classes is Any."""
    assert [line for line in output["right"] if "error:" in line] == []
    found = [re.findall(r'"(.*)"', line)[0] for line in output["right"] if "Revealed" in line]
    assert [text.replace("builtins.", "") for text in found[:6]] == TYPES
    assert "ndarray" in found[6]
