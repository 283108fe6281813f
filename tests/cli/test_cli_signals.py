"""Signals, small memory and files that cannot be written, as users meet them.

Nothing here depends on the clock: a signal is sent when a certain line appears, or by the process
itself at a certain import or call.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_cli import EXACT, launch, one_line_error, run

from marginbn import verify_certificate
from marginbn.classifiers.model_file import load_model
from marginbn.exceptions import InputError
from marginbn.files import try_writing, write_or_rescue
from marginbn.solvers.checkpoint import read_arrays
from seeds import slow
from signals import attempt

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

CODES = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
LINES = {
    "SIGINT": "marginbn: interrupted before there was a result\n",
    "SIGTERM": "marginbn: ended by SIGTERM before there was a result\n",
    "SIGHUP": "marginbn: ended by SIGHUP before there was a result\n",
}

AT_IMPORT = """
import signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == {module!r}:
            {act}
sys.meta_path.insert(0, Finder())
"""
MAIN = """
from marginbn.__main__ import main
main()
"""


def run_script(script: str, *args: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """The program, with something done to it before."""
    command = [sys.executable, "-c", script + MAIN, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, **options)


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("module", ["typer", slow("numpy"), slow("scipy.special"), "sklearn.base"])
def test_signals_while_loading(name: str, module: str) -> None:
    act = f"signal.raise_signal(signal.{name})"
    done = run_script(AT_IMPORT.format(module=module, act=act), "fit", "iris", *EXACT)
    assert (done.returncode, done.stdout, done.stderr) == (CODES[name], "", LINES[name])


def test_an_interrupt_in_a_finaliser_is_not_lost() -> None:
    """Python prints and forgets it; the program ends all the same, and without that print."""
    act = "(type('F', (), {'__del__': lambda _: signal.raise_signal(signal.SIGINT)})(), 0)[1]"
    script = AT_IMPORT.format(module="sklearn.base", act=act)
    done = run_script(script, "fit", "iris", "--method", "max-margin", "--time-limit", 600)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.endswith(LINES["SIGINT"])
    assert "Exception ignored" not in done.stderr


def test_a_swallowed_interrupt_ends_a_program_without_a_result() -> None:
    """A library that catches everything cannot keep the program alive."""
    script = AT_IMPORT.format(module="sklearn.base", act="self.swallow()").replace(
        "class Finder:",
        "class Finder:\n"
        "    def swallow(self):\n"
        "        import time\n"
        "        try: signal.raise_signal(signal.SIGTERM)\n"
        "        except BaseException: time.sleep(600)\n",
    )
    done = run_script(script, "fit", "iris")
    assert (done.returncode, done.stdout, done.stderr) == (143, "", LINES["SIGTERM"])


@pytest.mark.parametrize(("name", "parents"), [("SIGINT", 2), slow("SIGTERM", 3)])
def test_signals_while_compiling(name: str, parents: int, tmp_path: Path) -> None:
    """From an empty cache: the first structure is the result, no machine code is half written."""
    environment = {**os.environ, "MARGINBN_CACHE": str(tmp_path)}
    options = ["--method", "max-margin", "--max-parents", parents, "--time-limit", 600, "-q"]
    process = launch("fit", "waveform-21", "--method", "max-margin", *options, env=environment)
    assert process.stderr is not None
    line = process.stderr.readline()
    assert "compiling" in line
    process.send_signal(getattr(signal, name))
    stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 3, stderr
    assert "Traceback" not in stderr
    assert stdout
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or pickle.loads(path.read_bytes())


@pytest.mark.parametrize(("name", "jobs"), [("SIGINT", 2), ("SIGTERM", 1)])
def test_signals_during_a_search_lose_nothing(name: str, jobs: int) -> None:
    """Model, checkpoint, certificate and summary are there; no process or file is left over."""
    trial = attempt(name, jobs)
    assert trial.searched, trial.stderr
    assert (trial.defects, trial.code) == ([], 3), trial
    assert "stdout" in trial.wrote


def test_a_closed_terminal_keeps_the_result(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("m", "c", "p")]
    options = ["-o", files[0], "--checkpoint", files[1], "--certificate", files[2]]
    options += ["--method", "max-margin", "--holdout", 0, "--time-limit", 600]
    process = launch("fit", "waveform-21", *options)
    assert process.stderr is not None
    assert process.stdout is not None
    for line in process.stderr:
        if "objective" in line:
            break
    process.stderr.close()
    process.stdout.close()
    process.send_signal(signal.SIGHUP)
    process.wait(600)
    result = load_model(files[0]).result_
    assert result.status == "interrupted"
    assert read_arrays(files[1])[1]["bound"] >= result.bound
    assert verify_certificate(files[2]).verified


def test_nohup_is_respected(tmp_path: Path) -> None:
    """A signal that is ignored from the beginning stays so."""
    act = "signal.raise_signal(signal.SIGHUP)"
    script = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    script += AT_IMPORT.format(module="sklearn.base", act=act)
    assert run_script(script, "fit", "iris", "-q", *EXACT).returncode == 0


CV = [*EXACT, "--method", "max-margin-cv", "--p", 0.8, "--jobs", 2]


@pytest.mark.parametrize(
    ("name", "options"),
    [("SIGINT", EXACT), slow("SIGTERM", EXACT), slow("SIGHUP", EXACT), slow("SIGTERM", CV)],
)
def test_a_signal_while_a_result_is_written_waits(name, options, tmp_path):
    """The search is over, and its result is kept; idle workers do not keep the program alive."""
    script = f"""
import signal
import marginbn.classifiers.model_file as model_file
save = model_file.save_model
def save_model(*args, **options):
    signal.raise_signal(signal.{name})
    save(*args, **options)
model_file.save_model = save_model
"""
    path = tmp_path / "m.json"
    done = run_script(script, "fit", "iris", "-q", "--json", "-o", path, *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["objective"] == load_model(path).result_.objective


# --- files that cannot be written -----------------------------------------------------------------


@pytest.mark.parametrize("option", ["--output", "--checkpoint", "--certificate"])
def test_outputs_are_tried_before_the_search(option: str, tmp_path: Path) -> None:
    """A typo is told at once, with the name of the option; nothing is read or left behind."""
    for place in (tmp_path / "no" / "m.json", tmp_path):
        result = run("fit", "no-such-table", option, place)
        line = one_line_error(result)
        assert "cannot write" in line
        assert option in line
    assert list(tmp_path.iterdir()) == []


def test_other_outputs_are_tried_first_too(tmp_path: Path) -> None:
    absent = tmp_path / "no" / "x.mps"
    for args in (
        ["predict", "no-model", "iris", "-o", absent],
        ["report", "no-model", "-o", absent],
        ["problem", "formulate", "no-such-table", "-o", absent],
        ["export", "no-model", "-o", absent, "--to", "bif"],
    ):
        assert "cannot write" in one_line_error(run(*args))


def test_a_result_that_cannot_be_saved_goes_elsewhere(tmp_path, monkeypatch):
    """The disk got full during the search: the summary is printed and the model is beside."""
    from marginbn.classifiers import model_file

    save = model_file.save_model
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()

    def on_full_disk(classifier: Any, path: Any, **options: Any) -> None:
        if "full" in str(path):
            raise InputError(f"cannot write {path}: no space left")
        save(classifier, path)

    monkeypatch.setattr(model_file, "save_model", on_full_disk)
    result = run("fit", "iris", "--json", "-q", "-o", "full/m.json", *EXACT)
    assert result.exit_code == 1
    assert result.stderr.startswith("marginbn: error: cannot write full/m.json: no space left")
    (rescued,) = tmp_path.glob("m-*.json")
    assert str(rescued) in result.stderr
    assert json.loads(result.stdout)["objective"] == load_model(rescued).result_.objective


def test_a_rescue_tries_folder_after_folder(tmp_path, monkeypatch):
    """The working folder, that for temporary files; then the first error is told."""
    monkeypatch.chdir(tmp_path)
    tried: list[str] = []

    def write(path: str) -> None:
        tried.append(path)
        if len(tried) < 3:
            raise InputError(f"cannot write {path}")

    found = write_or_rescue("a/m.json", write)
    assert found == f"cannot write a/m.json; written to {tried[2]} instead"
    assert [os.path.dirname(path) for path in tried[:2]] == ["a", str(tmp_path)]
    with pytest.raises(InputError, match=r"cannot write a/m\.json"):
        write_or_rescue("a/m.json", lambda path: tried.clear() or write(path))


def test_trying_leaves_what_is_there(tmp_path: Path) -> None:
    """Neither a new file nor a touched one; devices may be written."""
    path = tmp_path / "m.json"
    path.write_text("old")
    before = path.stat()
    try_writing(path, "output")
    try_writing(os.devnull, "output")
    assert path.stat() == before
    assert list(tmp_path.iterdir()) == [path]
