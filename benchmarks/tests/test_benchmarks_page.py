"""The page of benchmarks: every section from records by hand, and what is missing is said."""

import json
import math
import subprocess
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks import __main__ as command
from benchmarks import classifiers, cold_start, long_tables, page
from benchmarks import run as running
from benchmarks.instances import Instance
from benchmarks.run import measure, read_records, run_commands, run_suite
from benchmarks.suites import Run

ORIGIN = {"commit": "abc", "engine": "e1", "machine": "m", "reference": {"cpu": 0.1, "wall": 0.1}}


def solve(instance, solver, seconds, status="optimal", limit=300.0, gap=0.0):
    return {
        "key": f"{instance} {solver}",
        "instance": instance,
        "solver": solver,
        "limit": limit,
        "n_jobs": 1,
        "status": status,
        "gap_percent": gap,
        "seconds": seconds,
        "first_answer_seconds": 0.25,
        "nodes": 12,
        "peak_megabytes": 321.4,
        "origin": ORIGIN,
    }


def write(folder, name, records):
    (folder / name).write_text("".join(json.dumps(r) + "\n" for r in records))


def test_a_file_without_records_is_an_error(tmp_path, monkeypatch):
    path = str(tmp_path / "absent.jsonl")
    for words in (["table", path], ["growth", path], ["curves", path, str(tmp_path / "c.png")]):
        monkeypatch.setattr("sys.argv", ["benchmarks", *words])
        with pytest.raises(SystemExit, match="holds no records"):
            command.main()


def test_nothing_measured(tmp_path):
    """Without records every section says what command makes them."""
    text = page.write_page(tmp_path, tmp_path / "page.rst")
    assert text == (tmp_path / "page.rst").read_text(encoding="utf-8")
    assert text.count("Not measured yet.") == len(page.SECTIONS)
    assert all(f"``{section.command}``" in text for section in page.SECTIONS)


def test_against_formulation(tmp_path):
    """Seconds side by side; the geometric mean counts an unfinished run as its limit."""
    records = [
        solve("a", "branch_bound", 2.0),
        solve("a", "highs", 8.0),
        solve("b", "branch_bound", 3.0),
        solve("b", "highs", 299.0, "time_limit", gap=4.25),
        solve("c", "highs", 1.0) | {"status": "error"},
    ]
    write(tmp_path, "against-formulation.jsonl", records)
    text = page.write_page(tmp_path, tmp_path / "page.rst")
    assert "     - 2.00 s\n     - 8.00 s\n" in text
    assert "     - 3.00 s\n     - 4.25 % left after 299 s\n" in text
    mean = math.sqrt(8 / 2 * 300 / 3)
    assert f"highs: {mean:.1f} times our seconds (geometric mean of 2 problems" in text
    assert "All 4 records are of engine e1." in text


def test_other_sections(tmp_path):
    """Hard problems, general networks, classifiers, growth and cold start from one record each."""
    write(tmp_path, "table-one.jsonl", [solve("vehicle:sm:0.9:2", "branch_bound", 60.0)])
    size = {"variables": 37, "parent_sets": 1928}
    search = solve("alarm1000.BDeu.3", "auto", 1.5) | size | {"objective": -11240.3470931}
    scores = {"key": "alarm1000 bdeu 3 scores", "table": "alarm1000", "score": "bdeu"}
    scores |= size | {"max_parents": 3, "rows": 1000, "seconds": 0.234, "origin": ORIGIN}
    write(tmp_path, "general.jsonl", [scores, search])
    timing = {"task": "TAN", "rows": 1000, "features": 20, "predicted_rows": 100, "origin": ORIGIN}
    timing |= {"peak_megabytes": 100.0}
    contenders = [
        timing | {"contender": "marginbn", "fit_cpu": 0.01, "predict_cpu": 0.001},
        timing | {"contender": "pgmpy", "fit_cpu": 0.5, "predict_cpu": 0.02},
    ]
    write(tmp_path, "classifiers.jsonl", contenders)
    shapes = [(1000, 0.1), (10_000, 1.0), (100_000, 20.0)]
    grown = [
        {"axis": "rows", "contender": "TAN", "rows": n, "processor": s, "peak": 50.0}
        for n, s in shapes
    ]
    grown.append({"axis": "rows", "contender": "TAN", "rows": 10**6, "error": "more than 300 s"})
    write(tmp_path, "growth.jsonl", grown)
    start = {"task": "python", "wall": 0.02, "cpu": 0.015, "peak_megabytes": 9.0, "origin": ORIGIN}
    write(tmp_path, "cold-start.jsonl", [start])
    text = page.write_page(tmp_path, tmp_path / "page.rst")
    assert "Not measured yet." in text  # formulation (19)
    assert (
        "   * - vehicle:sm:0.9:2\n     - 1\n     - 60.00 s\n     - 0.25\n     - 12\n     - 321"
        in text
    )
    row = ["alarm1000.BDeu.3", "37", "1928", "-11240.347093", "1.50 s", "4.7 s", "GOBNILP 5.1 s"]
    assert "   * - " + "\n     - ".join(row) in text
    row = ["alarm1000, BDEU, up to 3 parents", "1000", "37", "1928", "0.23 s", "0.255 s"]
    assert "   * - " + "\n     - ".join(row) in text
    assert "   * - pgmpy\n     - 0.500\n     - 50.0\n     - 200\n     - 20.0\n     - 100" in text
    row = ["TAN", "0.10 (50)", "1.00 (50)", "20.00 (50)", "—", f"{math.log10(20):.2f}"]
    assert "   * - " + "\n     - ".join(row) in text
    assert "   * - python\n     - 0.02\n     - 0.01\n     - 9\n" in text


@pytest.mark.filterwarnings("ignore")  # docutils renames an argument
def test_long_tables_and_clusters(tmp_path):
    long = {"key": "SM-100x20", "processor": 61.25, "peak": 1.5, "gap": 0.00012}
    write(tmp_path, "long-tables.jsonl", [long, {**long, "key": "NB-100x20", "gap": None}])
    rate = {"instance": "vehicle:sm:0.9:2", "n_workers": 2, "busy": 0.987, "origin": ORIGIN}
    rate |= {"nodes_per_second": 1234.4, "nodes_per_processor_second": 700.0}
    way = {"nodes": 900, "seconds": 3.21, "objective": 1254.5}
    proof = {"instance": "german:sm:0.9:2", "alone": way, "two": way, "killed": way}
    other = {**proof, "instance": "crx:sm:0.9:2", "killed": {**way, "objective": 1254.0}}
    write(tmp_path, "cluster.jsonl", [rate, proof, other])
    text = page.write_page(tmp_path, tmp_path / "page.rst")
    for cell in ("SM, 100 x 20", "61.2", "1500", "0.0120", "1234", "700", "99", "900 (3.2 s)"):
        assert f"- {cell}" in text, cell
    assert text.count("- yes") == 1
    assert text.count("**no**") == 1


@pytest.mark.parametrize("source", long_tables.SOURCES)
def test_the_same_rows_from_every_source(source, tmp_path, monkeypatch):
    monkeypatch.setattr(long_tables, "FILES", 3)
    monkeypatch.setattr(long_tables.tempfile, "gettempdir", lambda: str(tmp_path))
    path = tmp_path / "marginbn-long-400x6.parquet"
    long_tables.write_table(path, 400, 6)
    record = long_tables.measure_codes(f"codes.{source}-400x6")
    assert record["processor"] > 0
    assert record["gap"] is None


def test_page_is_valid(tmp_path):
    core = pytest.importorskip("docutils.core", reason="docutils is not installed")
    write(tmp_path, "against-formulation.jsonl", [solve("a", "branch_bound", 2.0)])
    text = page.write_page(tmp_path, tmp_path / "page.rst").replace(":doc:", ":literal:")
    writer = import_module("docutils.writers").get_writer_class("html")()
    html = core.publish_string(text, writer=writer, settings_overrides={"halt_level": 2})
    assert b"<table" in html


@pytest.mark.parametrize("task", ["naive Bayes", "TAN"])
def test_measure_contenders(task):
    """Ours are fitted and predict on a small table; the record has both times."""
    timing = next(t for t in classifiers.timings() if t.task == task)
    small = classifiers.Timing(task, timing.contender, timing.fit, 300, 4, 50)
    record = classifiers.measure(small, repeats=1)
    assert record["contender"].startswith("marginbn")
    assert record["predicted_rows"] == 50
    assert (
        min(record[f"{stage}_{clock}"] for stage in ("fit", "predict") for clock in ("cpu", "wall"))
        >= 0
    )
    assert record["key"] == small.key


def test_cold_start():
    """A new process is measured whole; a program that fails is not taken for an answer."""
    wall, cpu, megabytes = cold_start.run_once(cold_start.TASKS["python"], None)
    assert wall > 0
    assert cpu > 0
    assert 1 < megabytes < 200
    with pytest.raises(subprocess.CalledProcessError):
        cold_start.run_once("raise ValueError", None)
    where = "from marginbn.solvers.compile import cache_root as root"
    cold_start.run_once(f"{where}\nassert str(root().parent) == '/nowhere'", "/nowhere")
    assert {"soft margin, nothing compiled", "import marginbn"} <= set(cold_start.keys())


def test_run_commands(tmp_path, capsys):
    """Finished keys are skipped, and a command that fails leaves a record that says so."""
    path = tmp_path / "r.jsonl"
    write(tmp_path, "r.jsonl", [{"key": "done"}])
    run_commands({"done": ["--help"], "bad": ["no-such-command"]}, path, {"bad": {"solver": "x"}})
    found = read_records(path)
    assert [r["key"] for r in found] == ["done", "bad"]
    assert (found[1]["status"], found[1]["solver"]) == ("error", "x")
    assert "[1/1] bad" in capsys.readouterr().err


def test_an_interrupted_command_leaves_no_record(tmp_path, monkeypatch, capsys):
    """The next run does it again, or goes on from its checkpoint."""
    answer = subprocess.CompletedProcess([], 0, '{"key": "k", "status": "interrupted"}', "")
    monkeypatch.setattr(running.subprocess, "run", lambda *_, **__: answer)
    run_commands({"k": ["one"]}, tmp_path / "r.jsonl")
    assert read_records(tmp_path / "r.jsonl") == []
    assert "k was interrupted" in capsys.readouterr().err


def test_a_long_run_has_several_sittings(tmp_path, monkeypatch):
    """Their seconds count together; the checkpoint stays until there is a record."""
    unit = Run(Instance("random-60-5-2-0", "sm", 0.9, 2), "branch_bound", 700.0, 2)
    seen, path = [], tmp_path / "r.jsonl"

    def run_one(commands, records, about):
        words = commands[unit.key]
        checkpoint = Path(words[words.index("--checkpoint") + 1])
        if not seen:
            checkpoint.with_suffix(".seconds").write_text("500\n")
            seen.append(measure(unit, None, checkpoint))
            return
        assert checkpoint.exists()
        write(tmp_path, "r.jsonl", [measure(unit, None, checkpoint)])

    monkeypatch.setattr(running, "run_commands", run_one)
    run_suite([unit], None, path)
    run_suite([unit], None, path)
    record = read_records(path)[0]
    assert record["status"] == seen[0]["status"] == "optimal"
    assert record["objective"] == seen[0]["objective"]
    assert record["seconds"] > seen[0]["seconds"] > 500
    assert list((tmp_path / "checkpoints").iterdir()) == []
