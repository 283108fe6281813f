"""What names and labels hold reaches a terminal as letters, and a spreadsheet as text."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from commands import run
from marginbn import NaiveBayesClassifier, describe
from marginbn.cli.running import harmless
from marginbn.network.wording import visible
from seeds import slow
from tables import write_rows

CLEAR, TITLE, FORGED = "\x1b[2J", "\x1b]0;title\x07", "x\nProved: every structure"
FEATURES = (f"a{CLEAR}", FORGED, "b\u202egnp.exe", "c\x9b31m", "d\x7f\r")
CLASS = f"y{TITLE}"
EXACT = ["--method", "max-margin", "--max-parents", "1"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table whose names and labels attack whoever looks at them."""
    path = tmp_path / "t.csv"
    states = [CLEAR, TITLE, "\u2066left"]
    rows = [
        [states[(i * k) % 3] for k in range(1, len(FEATURES) + 1)]
        + [f"no{CLEAR}\n" if i % 2 else "yes"]
        for i in range(24)
    ]
    write_rows(path, [*FEATURES, CLASS], rows)
    return path


@pytest.fixture
def model(table: Path) -> Path:
    path = table.with_name("m.json")
    assert run("fit", table, "-t", CLASS, "-o", path, "--quiet", *EXACT).exit_code == 0
    return path


def check_clean(text: str) -> None:
    """Nothing but letters and line ends; and no line that a name has begun."""
    controls = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert controls <= {"\n"}
    assert not [line for line in text.splitlines() if line.startswith("Proved: every")]


@pytest.mark.parametrize(
    "command",
    [
        "fit {t} -t {y} -o {d}/n.json --certificate {d}/p.cert",
        "fit {t} -t {y} --json",
        "fit {t} -t {y} --method max-margin-cv --holdout 0",
        "show {m}",
        "show {m} --tables",
        "show {m} --tables --json",
        "evaluate {t} -t {y} --folds 2",
        "report {m} -o {d}/{esc}.html",
        "problem formulate {t} -t {y} -o {d}/s{esc}.mps",
        "fit {t} -t {esc}",
        "fit {t} -t {y} --drop {esc}",
        "fit {esc}.csv -t y",
        "show {esc}.json",
        "verify {esc}.cert",
        "problem solve {esc}.jkl",
        "problem {esc}",
        "{esc}",
        "--{esc}",
        "fit --{esc}",
        "fit {t} {esc}",
        "fit {t} --method {esc}",
        "fit {t} --require {esc}",
    ],
)
def test_terminals_see_no_control_characters(table, model, tmp_path, command):
    """On stdout and stderr, whatever the command and however it ends."""
    words = {"t": table, "m": model, "d": tmp_path, "y": CLASS, "esc": f"z{CLEAR}{TITLE}\u202e"}
    args = [word.format(**words) for word in command.split()]
    if args[0] == "fit":
        args += EXACT if "max-margin-cv" not in args else ["--max-parents", "1", "--p", "0.9"]
    if args[0] == "evaluate":
        args += EXACT
    result = run(*args)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.output
    check_clean(result.stdout)
    check_clean(result.stderr)


def test_a_proof_and_scores_are_shown_clean(table: Path, tmp_path: Path) -> None:
    proof, scores = tmp_path / "p.cert", tmp_path / "s.jkl"
    run("fit", table, *EXACT, "-t", CLASS, "--holdout", 0, "--certificate", proof)
    run("problem", "score", table, "-t", CLASS, "-o", scores, "--max-parents", 1)
    for args in (
        ["verify", proof],
        ["verify", proof, "--data", table],
        ["verify", proof, "--data", table, "-t", FEATURES[0]],
        ["problem", "solve", scores, "--quiet"],
    ):
        result = run(*args)
        assert result.output
        check_clean(result.stdout)
        check_clean(result.stderr)


def test_names_are_shown_escaped_not_left_out(model: Path) -> None:
    shown = run("show", model, "--tables").stdout
    for part in (r"a\x1b[2J", r"x\nProved", r"b\u202egnp", r"c\x9b31m", r"d\x7f", r"no\x1b[2J"):
        assert part in shown


def test_the_text_of_the_library_is_clean_too() -> None:
    """A notebook or a script prints it to the same terminals."""
    classifier = NaiveBayesClassifier().fit([[CLEAR], [TITLE]], [FORGED, "b"])
    check_clean(describe(classifier))
    check_clean(str(classifier.explain([[CLEAR]])[0]))


def test_other_scripts_stay_as_they_are() -> None:
    """Letters of all kinds, marks and the joiners that some scripts need."""
    for text in ("Größe", "می‌خواهم", "क्ष", "👩‍🔬", "日本語", "e\u0301"):
        assert visible(text) == text
    assert visible("\ud800") == r"\ud800"
    assert visible("\u2028") == r"\u2028"
    assert harmless(f"one\ntwo{CLEAR}") == "one\ntwo\\x1b[2J"


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal of one's own")
@pytest.mark.parametrize("command", ["predict {m} {t} --proba", slow("export {m} --to dot")])
def test_data_are_clean_on_a_terminal_and_as_they_are_in_a_pipe(table, model, command):
    """A file must hold the labels themselves, a screen must not obey them."""
    args = [word.format(m=model, t=table) for word in command.split()]
    whole = [sys.executable, "-m", "marginbn", *args]
    piped = subprocess.run(whole, capture_output=True, check=True).stdout.decode()
    assert CLEAR in piped
    ours, theirs = os.openpty()
    process = subprocess.Popen(whole, stdout=theirs)
    os.close(theirs)
    seen = b""
    while part := _read(ours):
        seen += part
    os.close(ours)
    assert process.wait() == 0
    check_clean(seen.decode().replace("\r\n", "\n"))
    assert r"\x1b[2J" in seen.decode()


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 65536)
    except OSError:  # how Linux says that the other side has closed
        return b""


# ---------------------------------------------------------------------- spreadsheets

LABELS = ["=1+1", "+1", "-x", "@SUM(A1)", "\tx", "＝1", "plain"]


def learn(folder: Path, labels: list[Any], name: str = "=name") -> tuple[Path, Path]:
    rows = [[str(i), label] for i, label in enumerate(labels)] * 3
    table, model = folder / "t.csv", folder / "m.json"
    write_rows(table, ["x", name], rows)
    args = ["--method", "naive-bayes", "--holdout", 0, "--kind", "x=categorical", "--quiet"]
    done = run("fit", table, "-t", name, "-o", model, *args)
    assert done.exit_code == 0, done.output
    return model, table


def test_labels_are_written_as_they_are(tmp_path: Path) -> None:
    model, table = learn(tmp_path, LABELS)
    target = tmp_path / "p.csv"
    assert run("predict", model, table, "--keep", "=name", "-o", target).exit_code == 0
    with open(target, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header[:2] == ["=name", "=name_predicted"]
    for cells in zip(*(row[:2] for row in rows), strict=True):
        assert {cell.strip() for cell in cells} == {label.strip() for label in LABELS}
