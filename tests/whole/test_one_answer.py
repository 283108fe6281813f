"""The command line, Python and the report say the same of one model, in the same words.

One small table has dates, an interaction and missing values.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import marginbn
from marginbn import (
    BNClassifier,
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    Search,
    TANClassifier,
    describe,
    inspect_data,
    make_report,
    save_model,
)
from marginbn.cli import app
from marginbn.report.contents import Report
from marginbn.report.effects import measure_effects
from marginbn.report.summary import describe_trained, verdict

pytestmark = pytest.mark.filterwarnings("ignore::marginbn.DataWarning")
ROOT = Path(__file__).parents[2]


def customers(n: int = 300) -> tuple[pd.DataFrame, pd.Series]:
    """A date that counts, an age that counts only together with the sex, an age that is missing."""
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 1200, n), unit="D")
    sex = rng.choice(["f", "m"], n)
    age = rng.integers(1, 80, n).astype(float)
    left = ((age < 40) == (sex == "f")) ^ (rng.random(n) < 0.1)
    age[:40] = np.nan
    X = pd.DataFrame({"joined": days, "sex": sex, "age": age, "one": "always"})
    return X, pd.Series(np.where(left, "yes", "no"), name="left")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table, its model and what ``fit`` printed."""
    folder = tmp_path_factory.mktemp("customers")
    X, y = customers()
    X.assign(joined=X["joined"].dt.strftime("%Y-%m-%d"), left=y).to_csv(
        folder / "t.csv", index=False
    )
    result = run("fit", folder / "t.csv", "--target", "left", "-o", folder / "m.json")
    (folder / "printed.txt").write_text(result.output, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def clf() -> BNClassifier:
    """The same model, learned in Python from the data frame."""
    return BNClassifier().fit(*customers())


def run(*args: object, **options: Any) -> Any:
    result = CliRunner().invoke(app, [str(a) for a in args], **options)
    assert result.exit_code == 0, result.output
    return result


def test_one_unit_for_each_measure(folder: Path, tmp_path: Path) -> None:
    """Shares and gaps are in per cent and scores are not, whatever prints them."""
    shown = " ".join(run("show", folder / "m.json").stdout.split())
    for measure in ("accuracy", "balanced accuracy", "calibration error"):
        assert re.search(rf"{measure} [\d.]+ %", shown), measure
        assert not re.search(rf"{measure} 0\.\d+\b(?! %)", shown), measure
    model, proof = tmp_path / "p.json", tmp_path / "p.mbc"
    options = ("-t", "left", "-o", model, "--certificate", proof)
    found = run("fit", folder / "t.csv", *options)
    verified = run("verify", proof, "--model", model, "--data", folder / "t.csv").stdout
    assert "a gap of at most 0.0001 % counts as optimal" in verified
    assert re.search(r"penalised loss within [\d.]+ % of its minimum", " ".join(verified.split()))
    for text in (shown, found.output, verified):
        assert re.search(r"(gap|within) (< )?[\d.]+ %", text)
        assert not re.search(r"\de-\d", text)


def test_classes_that_are_numbers_stay_in_order(tmp_path: Path) -> None:
    """10 after 2, whatever the kind of file."""
    rows = [f"{label % 3},{label}" for label in (1, 2, 3, 10, 11, 12) for _ in range(8)]
    declared = "@relation t\n@attribute a {0,1,2}\n@attribute class {1,2,3,10,11,12}\n@data"
    models = {}
    for name, head in (("t.csv", "a,class"), ("t.arff", declared)):
        (tmp_path / name).write_text("\n".join([head, *rows]), encoding="utf-8")
        model = tmp_path / f"{name}.json"
        run("fit", tmp_path / name, "-t", "class", "--method", "naive-bayes", "-o", model)
        models[name] = json.loads(model.read_text(encoding="utf-8"))["network"]
    assert models["t.csv"]["variables"][0]["states"] == ["1", "2", "3", "10", "11", "12"]
    assert models["t.arff"] == models["t.csv"]


def test_the_header_names_the_table(folder: Path) -> None:
    """Title, class, data, rows, date and version; the file of the model remembers the table."""
    run("report", folder / "m.json", "-o", folder / "m.html")
    head = (folder / "m.html").read_text(encoding="utf-8").partition("</header>")[0]
    words = re.sub(r"<[^>]*>", "", head[head.index("<h1>") :])
    day = r"\d+ \w+ 20\d\d"
    assert re.match(
        rf"What predicts left\s*class left · data t\.csv · 300 rows, 6 columns · learned {day} · "
        rf"marginbn {re.escape(marginbn.__version__)}",
        words,
    )


def test_stories_are_in_order() -> None:
    """The gallery sorts by file name, so numbers have two digits; the first starts from a table."""
    names = sorted(path.name for path in (ROOT / "examples").glob("plot_*.py"))
    assert [int(name.split("_")[1]) for name in names] == list(range(1, len(names) + 1))
    first = (ROOT / "examples" / names[0]).read_text(encoding="utf-8")
    assert all(word in first for word in ("customers.csv", "make_report", "export_model"))


def test_summaries_are_whole_sentences() -> None:
    """The table of the reference cuts them at the first full stop, that of an abbreviation too."""
    found = {name: inspect.getdoc(getattr(marginbn, name)) or "" for name in marginbn.__all__}
    firsts = {name: text.partition("\n\n")[0] for name, text in found.items()}
    assert [name for name, text in firsts.items() if re.search(r"\b(eq|no|fig)\.", text)] == []


def test_importances_are_one_number(clf: BNClassifier, folder: Path) -> None:
    """In Python, in the report and in ``marginbn show``; of two classes mean |P(c | s) - P(c)|."""
    effects = measure_effects(clf)
    assert effects is not None
    points = {clf.network_.names[e.variable]: e.points for e in effects}
    found = dict(zip(clf.feature_names_in_, clf.feature_importances_, strict=True))
    assert found["sex"] == points["sex"]
    assert found["joined"] == max(points[f"joined {part}"] for part in ("year", "month", "weekday"))
    assert found["one"] == 0
    by_hand = sum(
        share * abs(clf.posterior({"sex": state})["yes"] - clf.posterior({})["yes"])
        for state, share in clf.network_.posterior("sex").items()
    )
    assert found["sex"] == pytest.approx(by_hand, abs=1e-9)
    record = json.loads(run("show", folder / "m.json", "--json").stdout)
    assert record["importances"] == pytest.approx(found, abs=1e-12)
    report = Report(clf, "t", effects=effects)
    assert clf.network_.names[report.order[0]] == max(points, key=points.__getitem__)


def test_counted_margin_networks_warn_about_incomplete_rows(tmp_path: Path) -> None:
    """ask and the page; the default model and a complete row need no warning."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    words = "Where columns are unknown, the answer can differ from the share in the data."
    for maker, is_told in ((MaxMarginBNClassifier, True), (BNClassifier, False)):
        fitted = maker().fit(X, y)
        save_model(fitted, tmp_path / "m.json")
        whole = [f"{name}={value}" for name, value in X.iloc[0].items()]
        assert (words in run("ask", tmp_path / "m.json", whole[0]).stderr) is is_told
        assert words not in run("ask", tmp_path / "m.json", *whole).stderr
        assert (words in make_report(fitted).html) is is_told


@pytest.mark.parametrize("gap_tolerance", [1e-6, 0.02, 0.2])
@pytest.mark.parametrize(
    "kind", [BNClassifier, MaxMarginBNClassifier, GenerativeBNClassifier, TANClassifier]
)
def test_a_bound_that_is_met_is_called_a_proof(
    kind: Any, gap_tolerance: float, tmp_path: Path
) -> None:
    """What is claimed follows from the objective and the bound that are printed next to it."""
    options = {} if kind is TANClassifier else {"search": Search(gap_tolerance=gap_tolerance)}
    fitted = kind(**options).fit(*customers())
    save_model(fitted, tmp_path / "m.json")
    shown = describe(fitted), run("show", tmp_path / "m.json").stdout
    for told in shown:
        numbers = dict(re.findall(r"^ *(objective|bound) +(\S+)$", told, re.MULTILINE))
        objective, bound = float(numbers["objective"]), float(numbers["bound"])
        claim = " ".join(told.partition("\n\n")[0].split())
        if objective == bound:
            assert re.match(r"(Proved|Claimed by the file, not checked): (largest|best) ", claim)
            assert not re.search(r"within|stopped|no bound|nothing proved", claim, re.IGNORECASE)
        else:
            gap = 100 * (bound - objective) / bound
            assert f": within {gap:.2f} % of the largest soft margin" in claim
            assert "stopped at the gap tolerance" in claim
    sentence = describe_trained(fitted)[0]
    assert ("(proved)" in sentence) == (objective == bound) != ("(best found)" in sentence)
    page = make_report(fitted, *customers(), n_folds=0).html
    assert escape(verdict(fitted)) in page


def test_a_wrong_p_names_its_option_and_pipes_are_written(folder: Path) -> None:
    """--p and not --gamma; -o /dev/stdout into a pipe writes what stdout gets."""
    args = ["fit", str(folder / "t.csv"), "-t", "left", "--method", "max-margin", "--p", "1.5"]
    wrong = CliRunner().invoke(app, args)
    assert wrong.exit_code == 2
    assert "--p" in wrong.stderr
    assert "gamma" not in wrong.stderr
    if not os.path.exists("/dev/stdout"):
        pytest.skip("no /dev/stdout here")
    command = [sys.executable, "-m", "marginbn", "predict", "m.json", "t.csv"]
    plain, piped = (
        subprocess.run([*command, *more], cwd=folder, capture_output=True, check=True).stdout
        for more in ([], ["-o", "/dev/stdout"])
    )
    assert piped == plain
    assert piped.count(b"\n") == 301


def test_a_number_that_counts_only_with_another_is_cut(clf: BNClassifier) -> None:
    """The age alone separates no classes here, with the sex it does."""
    ages = clf.coding_.columns[list(clf.network_.names).index("age") - 1]
    assert ages.cuts
    predicted = clf.predict(
        pd.DataFrame({**customers()[0].iloc[[99]].to_dict("list"), "age": [20.0], "sex": ["f"]})
    )
    assert predicted.tolist() == ["yes"]
    hints = inspect_data(*customers()).hints
    assert any("'age'" in hint and "cuts them at quartiles" in hint for hint in hints)


def test_the_last_line_of_a_fit_has_the_whole_time(folder: Path) -> None:
    """Compiling, if there was any, is part of it and named."""
    printed = (folder / "printed.txt").read_text(encoding="utf-8")
    assert re.search(r"^ *\d+\.\d s  done(, \d+\.\d s of it compiling)?$", printed, re.MULTILINE)
