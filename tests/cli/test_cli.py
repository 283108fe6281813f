"""The command line: same numbers as Python, one-line errors, documented exit codes."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import Result

import marginbn
from commands import run
from marginbn import MaxMarginBNClassifier, NaiveBayesClassifier, TANClassifier
from marginbn.classifiers.evaluation import cross_validate
from marginbn.classifiers.model_file import load_model, save_model
from marginbn.cli import app
from marginbn.cli.data import parse_kinds
from marginbn.cli.running import ProgressLine, clean_warnings
from marginbn.data.labelled import stratified_holdout
from marginbn.data.preparation import TableSettings
from marginbn.datasets import load_dataset
from marginbn.export.formats import load_network as load_any
from marginbn.report.comparison import MAJORITY
from marginbn.solvers.result import TracePoint

COMMANDS = [
    "inspect", "fit", "predict", "explain", "ask", "evaluate", "show", "report", "export", "learn",
    "verify", "problem",
]  # fmt: skip
PROBLEMS = ["score", "formulate", "solve"]
EXACT = ["--method", "max-margin", "--max-parents", "1"]
"""Options with which a search ends at once."""

TOY = """colour,size,y
red,1.5,a
blue,2.5,b
red,,a
blue,3.5,b
red,1.1,a
blue,9.0,b
green,1.2,a
blue,8.0,
"""


def launch(*args: object, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "marginbn", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def one_line_error(result: Result, code: int = 1) -> str:
    """The error of a failed command: one line, no traceback, nothing on stdout."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    line = result.stderr.splitlines()[-1]
    assert line.startswith("marginbn: error: ")
    assert "Traceback" not in result.stderr
    return line


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """Eight rows with a missing value, a missing class and a rare category."""
    path = tmp_path / "toy.csv"
    path.write_text(TOY)
    return path


@pytest.fixture
def iris_model(tmp_path: Path) -> Path:
    path = tmp_path / "iris.json"
    result = run("fit", "iris", "--holdout", 0, "-o", path, "-q", *EXACT)
    assert result.exit_code == 0, result.output
    return path


# --- help -----------------------------------------------------------------------------------------


def test_help_names_every_command_and_exit_code() -> None:
    result = run("--help")
    assert result.exit_code == 0
    listed = re.findall(r"^  ([a-z]+) ", result.stdout.split("Commands:")[1], re.MULTILINE)
    assert listed == COMMANDS
    for code in ("0", "1", "2", "3", "130"):
        assert f"\n    {code} " in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "..." not in result.stdout.split("Commands:")[1]
    group = run("problem", "--help").stdout.split("Commands:")[1]
    assert re.findall(r"^  ([a-z]+) ", group, re.MULTILINE) == PROBLEMS
    assert "..." not in group


@pytest.mark.parametrize("words", [[c] for c in COMMANDS] + [["problem", p] for p in PROBLEMS])
def test_every_command_has_help(words: list[str]) -> None:
    result = run(*words, "--help")
    assert result.exit_code == 0
    assert f"Usage: marginbn {' '.join(words)}" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_options_of_fit_are_listed_in_panels() -> None:
    """Twenty at most, under four headings, and all of them are shown."""
    command = get_command(app).commands["fit"]  # type: ignore[attr-defined]
    given = [p for p in command.params if p.param_type_name == "option"]
    assert len(given) <= 20
    assert {p.rich_help_panel for p in given} == {"Data", "Model", "Search", "Output"}
    text = run("fit", "--help").stdout
    headings = re.findall(r"^([A-Z][a-z]+):$", text, re.MULTILINE)
    assert headings == ["Arguments", "Data", "Model", "Search", "Output", "Options"]
    for option in given:
        assert re.search(rf"^  .*{option.opts[0]}\b", text, re.MULTILINE), option.opts


def all_options() -> list[tuple[str, Any]]:
    top = get_command(app).commands  # type: ignore[attr-defined]
    commands = [*top.values(), *top["problem"].commands.values()]
    return [(c.name, p) for c in commands for p in c.params if p.param_type_name == "option"]


@pytest.mark.parametrize(("command", "option"), all_options(), ids=lambda x: getattr(x, "name", x))
def test_help_of_an_option_is_short(command: str, option: Any) -> None:
    """At most twenty words before the default, one sentence or two, without inversions."""
    text = re.sub(r"\[default:.*?\]", "", option.help or "")
    assert 0 < len(text.split()) <= 20, text
    assert "may be repeated" not in text
    assert "beside" not in text


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom marginbn.cli import main\nsys.argv = ['marginbn', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'rich', 'joblib', 'numba', 'highspy'}\n"
        "sys.exit(1 if heavy & set(sys.modules) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_version() -> None:
    assert run("--version").stdout == f"marginbn {marginbn.__version__}\n"


# --- fit ------------------------------------------------------------------------------------------


def test_fit_agrees_with_python() -> None:
    """Learned from all rows, measured by a model of the others: the estimator's own numbers."""
    result = run("fit", "iris", "--json", *EXACT)
    assert result.exit_code == 0
    summary = json.loads(result.stdout)
    table = load_dataset("iris").train
    X, y = table.drop("class"), np.asarray(table.column("class").values.tolist())
    train, test = stratified_holdout(y, 0.2, 0)
    expected = MaxMarginBNClassifier(max_parents=1).fit(X, y)
    assert summary["objective"] == expected.objective_
    assert summary["bound"] == expected.bound_
    assert summary["proved"] is True
    measured = MaxMarginBNClassifier(max_parents=1).fit(X.take(train), y[train])
    assert summary["quality"]["accuracy"] == measured.score(X.take(test), y[test])
    assert summary["quality"]["n_rows"] == 30


def test_the_summary_is_readable() -> None:
    """Verdict first, then numbers, then the structure; notes go to stderr."""
    result = run("fit", "iris", *EXACT)
    lines = result.stdout.splitlines()
    assert lines[0] == "Proved: largest soft margin of all allowed structures."
    for word in ("score", "objective", "bound", "gap", "search"):
        assert any(line.startswith(f"  {word}") for line in lines), word
    assert "Structure" in lines
    assert "Quality on 30 held-out rows" in lines
    assert max(map(len, lines)) <= 80
    assert "Measuring: learning from 120 rows, 30 held out; Ctrl-C" in result.stderr
    assert "add --output" in result.stderr
    assert run("fit", "iris", "-q", *EXACT).stderr == ""


def test_a_fit_prepares_the_table_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For its hints and for what it learns; and it says everything once."""
    learn, n_calls = TableSettings.learn, count()

    def counting(*args: Any) -> Any:
        next(n_calls)
        return learn(*args)

    monkeypatch.setattr(TableSettings, "learn", counting)
    path = tmp_path / "t.csv"
    rows = [f"{i % 7}.{i % 10},{'ab'[i % 2]},{'xy'[i % 2]}" for i in range(240)]
    path.write_text("\n".join(["size,copy,class", *rows]))
    result = run("fit", path, "--target", "class", "--holdout", "0", "--method", "tan")
    assert next(n_calls) == 1
    assert result.stderr.count("'copy' alone gives the class away") == 1
    assert "drop it, --drop copy, unless" in " ".join(result.stderr.split())


def test_an_interrupted_measurement_keeps_the_model(tmp_path, monkeypatch):
    fit_prepared, n_calls = MaxMarginBNClassifier.fit_prepared, count()

    def once(*args: Any) -> MaxMarginBNClassifier:
        if next(n_calls):
            raise KeyboardInterrupt
        return fit_prepared(*args)

    monkeypatch.setattr(MaxMarginBNClassifier, "fit_prepared", once)
    result = run("fit", "iris", "--json", "-o", tmp_path / "m.json", *EXACT)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["quality"] is None
    assert load_model(tmp_path / "m.json").n_samples_ == 150


def test_the_test_part_of_a_data_set_is_used() -> None:
    result = run("fit", "mofn-3-7-10", "--method", "naive-bayes", "--json")
    summary = json.loads(result.stdout)
    assert summary["n_samples"] == 300
    assert summary["quality"]["n_rows"] == 1024
    assert "held out" not in result.stderr


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("max-margin", ["--p", "0.8", *EXACT]),
        ("max-margin-cv", ["--p", "0.7", *EXACT]),
        ("generative", []),
        ("tan", []),
        ("naive-bayes", ["--class-weight", "balanced"]),
    ],
)
def test_every_method_fits(method: str, options: list[str], tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    result = run("fit", "iris", "--method", method, "-o", path, *options)
    assert result.exit_code == 0, result.output
    predicted = run("predict", path, "iris")
    assert predicted.exit_code == 0
    assert len(predicted.stdout.splitlines()) == 151


def test_choices_of_max_margin_cv(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    options = ["--method", "max-margin-cv", "--time-limit", "600", "--p", "0.8"]
    result = run("fit", "iris", "-o", path, "--holdout", 0, "--max-parents", 2, *options)
    assert result.exit_code == 0, result.output
    params = load_model(path).get_params()
    assert params["gammas"] == [pytest.approx(np.log(4))]
    assert [*params["max_parents"]] == [1, 2]
    assert params["time_limit"] == 600


def test_options_reach_the_classifier(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    result = run(
        "fit", "iris", "-o", path, "--method", "max-margin", "--p", 0.8, "--max-parents", 1,
        "--time-limit", 0, "--jobs", 2, "--missing", "state",
        "--require", "class->petal width (cm)", "--forbid", "class -> sepal width (cm)",
        "--drop", "sepal length (cm)", "--kind", "petal length (cm)=numeric",
        "--class-weight", "setosa=2",
    )  # fmt: skip
    assert result.exit_code in (0, 3), result.output
    classifier = load_model(path)
    params = classifier.get_params()
    assert params["gamma"] == pytest.approx(np.log(4))
    assert [*map(tuple, params["required_arcs"])] == [("class", "petal width (cm)")]
    assert [*map(tuple, params["forbidden_arcs"])] == [("class", "sepal width (cm)")]
    expected = {
        "max_parents": 1,
        "time_limit": None,
        "n_jobs": 2,
        "missing": "state",
        "class_weight": {"setosa": 2.0},
    }
    assert {key: params[key] for key in expected} == expected
    assert "sepal length (cm)" not in classifier.feature_names_in_
    parents = classifier.structure_.parents
    assert 0 in parents[classifier.network_.variable_index("petal width (cm)")]
    assert 0 not in parents[classifier.network_.variable_index("sepal width (cm)")]


def test_a_limit_is_exit_code_3() -> None:
    command = ["fit", "wine", "--method", "max-margin", "--json", "--holdout", 0]
    assert run(*command, "--time-limit", 1e-9).exit_code == 3


def test_the_class_keeps_its_name(toy: Path, tmp_path: Path) -> None:
    """Arcs and outputs speak of the target by the name of its column."""
    path = tmp_path / "m.json"
    run("fit", toy, "-t", "y", "-o", path, "--require", "y->colour", "--holdout", 0, *EXACT)
    assert load_model(path).network_.names == ("y", "colour", "size")
    assert run("predict", path, toy).stdout.splitlines()[0] == "y,probability"


def test_a_warning_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """What every fold or replicate warns of is one line for the user of a command."""
    with clean_warnings():
        for text in ("rows are left out", "rows are left out", "another matter"):
            warnings.warn(text, UserWarning, stacklevel=1)
    told = capsys.readouterr().err.splitlines()
    assert told == ["marginbn: warning: rows are left out", "marginbn: warning: another matter"]


def test_warnings_are_single_lines(toy: Path) -> None:
    command = ["fit", toy, "-t", "y", "--method", "naive-bayes", "--holdout", 0]
    result = run(*command, "--missing", "drop")
    told = [line for line in result.stderr.splitlines() if "warning" in line]
    assert told[0] == "marginbn: warning: 1 of 8 rows have no 'y' and are left out"
    assert told[1].startswith("marginbn: warning: 1 of 7 rows have missing values")
    assert len(told) == 2


# --- errors ---------------------------------------------------------------------------------------


def test_unusable_input_is_one_line_and_exit_code_1(toy: Path, tmp_path: Path) -> None:
    assert "No such file" in one_line_error(run("fit", tmp_path / "none.csv", "-t", "y"))
    assert "no data set 'irsi'; try iris" in one_line_error(run("fit", "irsi"))
    assert "no column 'Y'" in one_line_error(run("fit", toy, "-t", "Y"))
    assert "no column 'sice'; did you mean 'size'?" in one_line_error(
        run("fit", toy, "-t", "y", "--drop", "sice")
    )
    assert "measured numbers" in one_line_error(run("fit", toy, "-t", "size"))
    assert "is no file of `marginbn fit` or `learn`" in one_line_error(run("show", toy))
    (tmp_path / "cut.json").write_text('{"format": ')
    assert "cut.json: $: Input data was truncated" in one_line_error(
        run("show", tmp_path / "cut.json")
    )
    assert "--kind: there is no column 'sise'; did you mean 'size'?" in one_line_error(
        run("fit", toy, "-t", "y", "--kind", "sise=numeric")
    )
    (tmp_path / "bad.csv").write_text("a,b\n1\n")
    assert "line 2: expected 2 fields" in one_line_error(
        run("fit", tmp_path / "bad.csv", "-t", "a")
    )
    assert "missing values" in one_line_error(
        run("fit", toy, "-t", "y", "--missing", "error", "--holdout", 0, *EXACT)
    )
    assert "cannot write" in one_line_error(
        run("fit", "iris", "--method", "tan", "-q", "-o", tmp_path / "no" / "m.json")
    )


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["fit"], "TABLE"),
        (["fit", "toy.csv"], "--target"),
        (["fit", "iris", "--method", "svm"], "Invalid value for '--method': 'svm' is not one of"),
        (["fit", "iris", "--p", "0.3"], "between 0.5 and 1"),
        (["fit", "iris", "--max-parents", "-1"], "--max-parents must be"),
        (["fit", "iris", "--time-limit", "-5"], "--time-limit must be"),
        (["fit", "iris", "--method", "tan", "--p", "0.9"], "--p: has no meaning with --method tan"),
        (["fit", "iris", "--method", "generative", "--p", "0.9"], "--p: has no meaning"),
        (["fit", "iris", "--method", "tan", "--checkpoint", "c"], "--checkpoint: has no meaning"),
        (["fit", "iris", "--method", "naive-bayes", "--certificate", "c"], "--certificate: has no"),
        (["fit", "iris", "--solver", "highs"], "No such option: --solver"),
        (["fit", "iris", "--holdout", "1"], "below 1"),
        (["fit", "iris", "--require", "class"], "parent->child"),
        (["fit", "iris", "--kind", "x=text"], "COL=numeric"),
        (["evaluate", "iris", "--folds", "1"], "folds"),
        (["export", "m.json"], "give json, bif, dot"),
        (["problem", "formulate", "iris", "--p", "2", "-o", "x.lp"], "between 0.5 and 1"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_options_are_exit_code_2(args: list[str], reason: str) -> None:
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert reason in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_interrupts_before_a_result_are_exit_code_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("marginbn.cli.data.load_dataset", interrupted)
    result = run("fit", "iris")
    assert result.exit_code == 130
    assert result.stderr == "marginbn: interrupted before there was a result\n"


def test_memory_errors_name_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:

    def exhausted(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("marginbn.cli.data.load_dataset", exhausted)
    assert "out of memory; fewer columns" in one_line_error(run("fit", "iris"))


def test_bugs_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw is not hidden behind a polite line."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("marginbn.cli.data.load_dataset", broken)
    assert isinstance(run("fit", "iris").exception, ZeroDivisionError)


# --- predict --------------------------------------------------------------------------------------


def test_columns_are_matched_by_name(toy: Path, tmp_path: Path) -> None:
    """Order does not matter, others are ignored, unseen and missing values are summed out."""
    model, rows = tmp_path / "m.json", tmp_path / "rows.csv"
    command = ["fit", toy, "-t", "y", "--method", "naive-bayes", "-o", model, "--holdout", 0]
    run(*command, "--missing", "drop")  # which leaves missing without a state
    rows.write_text("note,size,colour,y\nhello,,violet,?\n,1.3,red,zzz\n,,,\n")
    result = run("predict", model, rows, "--proba", "--json")
    assert result.exit_code == 0, result.output
    predicted = json.loads(result.stdout)
    prior = load_model(model).network_.posterior_array("y")
    assert predicted["P(a)"][0] == pytest.approx(prior[0])  # nothing is known about this row
    assert predicted["P(a)"][2] == pytest.approx(prior[0])
    assert predicted["y"][1] == "a"


@pytest.mark.parametrize("sign", [" ", ":", "~", "^"])
def test_separators_that_few_files_have(toy: Path, tmp_path: Path, sign: str) -> None:
    """They are found where a whole table is read; predict names the option that it needs."""
    model, odd = tmp_path / "m.json", tmp_path / "odd.csv"
    run("fit", toy, "-t", "y", "--method", "naive-bayes", "-o", model, "--holdout", 0)
    odd.write_text(
        f"size {sign} colour {sign} y\n1.5 {sign} red {sign} a\n2 {sign} blue {sign} b\n"
    )
    for command in (["fit", odd, "-t", "y"], ["inspect", odd], ["learn", odd]):
        assert run(*command).exit_code == 0
    columns = json.loads(run("inspect", odd, "--json").stdout)["columns"]
    assert [column["name"] for column in columns] == ["size", "colour", "y"]
    assert f"give --delimiter '{sign}'" in one_line_error(run("predict", model, odd))
    assert run("predict", model, odd, "--delimiter", sign).exit_code == 0


@pytest.mark.parametrize("text", ["full name\nAnna\nBo Li\n", "body mass\n1.5\n2.5\n", "y\na b\n"])
def test_spaces_in_one_column_separate_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    assert run("inspect", tmp_path / "t.csv").exit_code == 0


# --- the other commands ---------------------------------------------------------------------------


def test_evaluate_agrees_with_python() -> None:
    result = run("evaluate", "iris", "--folds", 4, "--seed", 1, "--json", "-q", *EXACT)
    assert result.exit_code == 0
    assert result.stderr == ""
    record = json.loads(result.stdout)
    others = ["TAN", "naive Bayes", "logistic regression", "most frequent class"]
    assert list(record["methods"]) == ["max-margin", *others]
    table = load_dataset("iris").train
    X, y = table.drop("class"), np.asarray(table.column("class").values.tolist())
    for name, make in (("naive Bayes", NaiveBayesClassifier), ("TAN", TANClassifier)):
        expected = cross_validate(make, X, y, 4, seed=1)
        found = record["methods"][name]
        assert [fold["accuracy"] for fold in found["folds"]] == list(expected.accuracies)
        assert (found["mean"], found["half_width"]) == (expected.mean, expected.half_width)


def test_evaluate_shows_a_table_and_its_progress(toy: Path) -> None:
    result = run("evaluate", toy, "-t", "y", "--folds", 2, "--missing", "state", *EXACT)
    assert result.stderr.count("max-margin: fold ") == 2
    lines = result.stdout.splitlines()
    assert lines[0] == "Every search of max-margin ended with a proof of optimality."
    assert re.match(r"Accuracy of max-margin on held-out rows: [\d.]+ % ± \d+\.\d ", lines[1])
    start = next(i for i, line in enumerate(lines) if line.startswith("  method "))
    methods = [re.split("  +", line.strip())[0] for line in lines[start + 1 : start + 6]]
    assert methods == ["max-margin", "TAN", "naive Bayes", "logistic regression", MAJORITY]
    assert "balanced accuracy" in result.stdout


def test_show_repeats_the_summary(iris_model: Path) -> None:
    """The saved classifier tells what fit told, as a claim; with --tables also its parameters."""
    fit = json.loads(run("fit", "iris", "--holdout", 0, "--json", *EXACT).stdout)
    show = json.loads(run("show", iris_model, "--json").stdout)
    assert fit["quality"] is fit.pop("logistic_accuracy") is None
    assert [column["name"] for column in fit.pop("data")["columns"]] == show["features"]
    different = {key for key in fit if fit[key] != show[key]}
    assert different <= {"seconds", "verdict", "proved", "evidence", "about"}
    text = run("show", iris_model, "--tables").stdout
    assert text.startswith("Claimed by the file, not checked: largest soft margin")
    assert "\nP(class" in text
    tables = json.loads(run("show", iris_model, "--tables", "--json").stdout)["network"]
    assert tables["format"] == "marginbn-network"


def test_export_writes_code_that_predicts(iris_model: Path, tmp_path: Path) -> None:
    """File and standard output hold the same; ONNX wants a file."""
    path = tmp_path / "m.sql"
    assert run("export", iris_model, "--to", "sql", "-o", path).exit_code == 0
    query = path.read_text(encoding="utf-8")
    assert run("export", iris_model, "--to", "sql").stdout == query
    result = run("export", iris_model, "--to", "sql", "--table", "t", "--keep", "id")
    assert 'FROM "t"' in result.stdout
    assert '"id"' in result.stdout
    assert "needs a file" in run("export", iris_model, "--to", "onnx").output


def test_export_writes_what_can_be_read_again(iris_model: Path, tmp_path: Path) -> None:
    """The network as JSON is the classifier's; DOT starts as DOT does."""
    run("export", iris_model, "-o", tmp_path / "n.json")
    assert load_any(tmp_path / "n.json") == load_model(iris_model).network_
    run("export", iris_model, "-o", tmp_path / "n.gv")
    dot = (tmp_path / "n.gv").read_text()
    assert run("export", iris_model, "--to", "dot").stdout == dot
    assert dot.startswith("digraph")
    written = json.loads(run("export", iris_model, "--to", "json").stdout)
    assert written == json.loads((tmp_path / "n.json").read_text())


def test_formulate_writes_the_problem(tmp_path: Path) -> None:
    """HiGHS solves the written file to the objective that fit proves."""
    import highspy

    path = tmp_path / "p.mps"
    result = run("problem", "formulate", "corral", "--max-parents", 1, "-o", path)
    assert result.exit_code == 0, result.output
    highs = highspy.Highs()
    highs.silent()
    highs.readModel(str(path))
    highs.run()
    options = ["--max-parents", 1, "--method", "max-margin"]
    fit = json.loads(run("fit", "corral", "--holdout", 0, "--json", *options).stdout)
    assert highs.getInfo().objective_function_value == pytest.approx(fit["objective"], rel=1e-6)


def test_an_existing_file_wins_over_a_data_set(toy, tmp_path, monkeypatch):
    """A file called iris is the user's, whatever we have by that name."""
    monkeypatch.chdir(tmp_path)
    toy.rename(tmp_path / "iris")
    assert "the format of" in one_line_error(run("fit", "iris", "-t", "y"))


# --- parts ----------------------------------------------------------------------------------------


def test_kinds_may_contain_equal_signs() -> None:
    assert parse_kinds(["a=b=numeric"]) == {"a=b": "numeric"}
    assert parse_kinds(None) == "auto"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_rewrites_one_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line has phase, objective, bound and gap; the last one has the whole time."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressLine() as progress:
        progress(TracePoint(0.1, 99.0, 100.0))
        deadline = time.monotonic() + 600
        while "objective" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.05)
    written = stream.getvalue()
    assert "s  search  objective 99.00  bound 100.00  gap 1.00 %" in written
    assert written.count("\n") == 1
    assert re.search(r"\r\x1b\[K +\d+\.\d s  done\n$", written)


def test_what_fails_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(ZeroDivisionError), ProgressLine():
        raise ZeroDivisionError
    assert "done" not in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_progress_is_silent_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressLine(enabled=False) as progress:
        progress(TracePoint(0.1, 99.0, 100.0))
        assert "preparing" not in progress.text(1.0)
    assert stream.getvalue() == ""


def test_progress_fits_eighty_columns() -> None:
    """Before the first structure and with scores of usual size."""
    progress = ProgressLine(enabled=False)
    assert progress.text(1.0) == "   1.0 s  preparing"
    progress(TracePoint(0.1, 4237.8371, 8788.8983))
    assert len(progress.text(3000.0, hint=True)) < 80
    progress.tell("validation, fold 1 of 5")
    assert progress.text(1.0) == "   1.0 s  validation, fold 1 of 5"


# --- real processes -------------------------------------------------------------------------------


def test_ctrl_c_keeps_the_best_structure() -> None:
    """An interrupted search ends with a summary, its gap, and exit code 3."""
    process = launch("fit", "waveform-21", "--max-parents", 3, "--time-limit", 300, "--json")
    assert process.stderr is not None
    for line in process.stderr:  # wait until there is a structure
        if "objective" in line:
            break
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 3, stderr
    summary = json.loads(stdout)
    assert summary["status"] == "interrupted"
    assert summary["gap"] is None or summary["gap"] > 0
    assert summary["quality"] is None  # the user wants to stop: nothing more is learned
    assert "Traceback" not in stderr
    assert "KeyboardInterrupt" not in stderr


def test_a_reader_that_leaves_is_no_error(iris_model: Path, tmp_path: Path) -> None:
    features = load_dataset("iris").train.drop("class").names
    many = "1.0,2.0,3.0,4.0\n" * 20_000  # more than a pipe holds
    (tmp_path / "rows.csv").write_text(f"{','.join(features)}\n{many}")
    rows = tmp_path / "rows.csv"
    command = f"{sys.executable} -m marginbn predict -q {iris_model} {rows} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=600)
    assert done.stdout.startswith("class")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_names_beyond_the_encoding_are_told(tmp_path: Path) -> None:
    """A terminal that cannot show a label gets an error line, not a traceback."""
    path = tmp_path / "m.json"
    classifier = NaiveBayesClassifier().fit([["x"], ["y"]], ["grün", "rot"])
    save_model(classifier, path)
    (tmp_path / "rows.csv").write_text("x0\nx\n")
    process = launch(
        "predict", path, tmp_path / "rows.csv", env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    _, stderr = process.communicate(timeout=600)
    assert process.returncode == 1, stderr
    assert "set PYTHONIOENCODING=utf-8" in stderr
    assert "Traceback" not in stderr


def test_a_classifier_of_an_array_predicts_a_table(tmp_path: Path) -> None:
    """Columns that had no names are called x0, x1, ... and found by these names."""
    path, rows = tmp_path / "m.json", tmp_path / "rows.csv"
    classifier = NaiveBayesClassifier().fit([["r", "s"], ["b", "t"], ["b", "s"]], [1, 2, 2])
    save_model(classifier, path)
    rows.write_text("x1,x0\ns,r\nt,b\n,\n")
    result = run("predict", path, rows)
    assert result.exit_code == 0, result.output
    assert [line.split(",")[0] for line in result.stdout.split()] == ["class", "1", "2", "2"]


def test_the_script_runs_as_a_module_and_by_name(iris_model: Path) -> None:
    """`python -m marginbn` and the installed script are the same program."""
    process = launch("show", iris_model, env={**os.environ, "COLUMNS": "80"})
    stdout, stderr = process.communicate(timeout=600)
    assert (process.returncode, stderr) == (0, "")
    assert stdout == run("show", iris_model).stdout
    script = Path(sys.executable).with_name("marginbn")
    if script.exists():
        done = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=600)
        assert done.stdout == f"marginbn {marginbn.__version__}\n"
