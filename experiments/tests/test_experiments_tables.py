"""From records to tables and figures: intervals, wins, ranges of the paper, ranks, curves."""

import csv
import itertools
import math
from importlib import import_module

import numpy as np
import pytest
from experiments import (
    comparison,
    critical,
    figures,
    learning_curves,
    page,
    protocol,
    published,
    records,
    results,
    tables,
)
from experiments.__main__ import main
from experiments.methods import LABELS
from experiments.records import Unit
from scipy.stats import friedmanchisquare

from marginbn.exceptions import InputError

SPECS = protocol.read_specs()
PAPER = published.read_paper()
S = 1957
ORIGIN = {
    "commit": "abc",
    "engine": "e1",
    "machine": "m",
    "reference": {"cpu": 0.004, "wall": 0.005},
}


def made_record(
    dataset, method, fold, correct, *, folds=1, seed=S, digest="d", loss=0.5, rows=None
):
    correct = np.array(correct, dtype=bool)
    return {
        "unit": Unit(dataset, method, seed, fold, rows).told,
        "quick": False,
        "split": {"folds_run": folds, "digest": digest, "n_train": rows or 5000},
        "accuracy": float(correct.mean()),
        "log_loss": loss,
        "brier": loss,
        "n_test": len(correct),
        "correct": records.pack_bits(correct),
        "notes": [],
        "seconds": {"fit": 1.0, "predict": 0.5, "cpu": 1.0, "total": 1.5},
        "origin": ORIGIN,
    }


def gap_record(dataset, method, gap, status="time_limit", seconds=60.0):
    return {
        "unit": Unit(dataset, method, S).told,
        "quick": False,
        "settings": {"table1_probability": 0.9},
        "search": {
            "paper_gap": gap,
            "status": status,
            "seconds": seconds,
            "limit": seconds,
            "trace": [[0.0, None, None], [0.5, 1.0, None], [1.0, 1.0, 2.0]],
        },
        "notes": [],
        "seconds": {"total": seconds},
        "origin": ORIGIN,
    }


def cell(grid, row, column):
    return dict(grid.rows)[row][grid.header.index(column) - 1]


# --- the paper's figures ---


def test_published_wins():
    wins = PAPER["table3"]
    assert all(set(wins[m]) == set(wins) - {m} for m in wins)
    assert all(few <= many for row in wins.values() for many, few in row.values())


def test_table3_follows_from_table2():
    """All 60 printed counts of wins lie in the range that the printed table 2 allows."""
    for method, row in PAPER["table3"].items():
        for rival, counts in row.items():
            for count, level in zip(counts, results.SIGNIFICANCE.values(), strict=True):
                allowed = published.wins_allowed(method, rival, level, SPECS)
                assert allowed.least <= count <= allowed.most, (method, rival, level)


def test_win_on_test_set_by_hand():
    """chess: 1022 of 1066 right against 931: 91 more, sure at any overlap; 1 more is never sure."""
    row = PAPER["table2"]["chess"]
    assert published.win(SPECS["chess"], row["sm"], row["nb"], 0.05) == published.Range(1, 1)
    assert published.win(SPECS["chess"], row["nb"], row["sm"], 0.32) == published.Range(0, 0)
    # 5 of 5 rows that differ: p = 1/32; with 500 more on either side: not even at 68 %
    better, worse = [95.50, 1.24], [95.03, 1.3]  # 1018 and 1013 rows
    assert published.win(SPECS["chess"], better, worse, 0.05) == published.Range(0, 1)


@pytest.mark.parametrize("seed", range(8))
def test_win_on_folds_contains_the_truth(seed):
    """Whatever the five fold accuracies are, the printed figures allow what the t test says."""
    rng = np.random.default_rng(seed)
    folds = rng.integers(60, 90, (2, 5)) / 100
    printed = [[round(100 * f.mean(), 2), round(100 * results.t_interval(f)[1], 2)] for f in folds]
    for level in (0.32, 0.05):
        won = results.paired_t_test(*folds) < level
        allowed = published.win(SPECS["iris"], *printed, level)
        assert allowed.least <= int(won) <= allowed.most


def test_wins_on_common_sets():
    """On all sets the count is the printed one; on a part the total narrows the range."""
    everything = published.wins_on("sm", "nb", 0, 0.32, SPECS)
    assert (everything.least, everything.most) == (18, 18)
    part = [n for n in SPECS if n not in ("satimage", "segment", "vehicle", "spambase")]
    narrowed = published.wins_on("sm", "nb", 0, 0.32, part)
    alone = published.wins_allowed("sm", "nb", 0.32, part)
    assert alone.least <= narrowed.least <= narrowed.most <= alone.most
    assert str(narrowed) == "14"  # the paper surely wins on the four others


# --- results ---


def test_test_set_result():
    """On a test set: 1.96 sqrt(p (1 - p) / n), and a binomial test on the rows that differ."""
    better = made_record("chess", "sm", 0, [1] * 8 + [0, 0])
    worse = made_record("chess", "nb", 0, [1] * 3 + [0] * 7)
    found = results.collect([better, worse])
    sm, nb = found["chess", "sm"][S], found["chess", "nb"][S]
    assert (sm.mean(), sm.half_width) == pytest.approx((0.8, 1.96 * math.sqrt(0.16 / 10)))
    assert sm.p_value_over(nb) == pytest.approx(1 / 32)  # five rows differ, all for sm
    assert nb.p_value_over(sm) == 1.0
    assert results.count_wins(found, "sm", "nb", ["chess"], 0.05).counts == (1,)


def fold_records(counts, name="iris", seed=S):
    return [
        made_record(name, m, f, [1] * k + [0] * (4 - k), folds=3, seed=seed)
        for m, ks in counts.items()
        for f, k in enumerate(ks)
    ]


def test_fold_result():
    """Over folds: Student t interval and paired t test."""
    found = results.collect(fold_records({"sm": [4, 3, 4], "nb": [3, 1, 2]}))
    sm, nb = found["iris", "sm"][S], found["iris", "nb"][S]
    deviation = 0.25 / math.sqrt(3)  # of 1, 0.75, 1
    assert sm.half_width == pytest.approx(4.302653 * deviation / math.sqrt(3))
    # differences 25, 50, 50: t = 5 with two degrees of freedom
    assert sm.p_value_over(nb) == pytest.approx(0.5 * (1 - 5 / math.sqrt(27)))


def test_seeds():
    made = fold_records({"sm": [4, 3, 4], "nb": [3, 1, 2]})
    made += fold_records({"sm": [2, 2, 2], "nb": [3, 1, 2]}, seed=S + 1)
    made += fold_records({"sm": [4, 3, 4], "nb": [3, 1, 2]}, "glass")
    found = results.collect(made)
    wins = results.count_wins(found, "sm", "nb", ["iris", "glass", "vote"], 0.32)
    assert (wins.counts, wins.datasets) == ((2, 1), ("iris", "glass"))
    assert (wins.mean, wins.spread) == (1.5, (1, 2))
    means = [11 / 12, 6 / 12]
    assert results.mean_over_seeds(found["iris", "sm"]) == pytest.approx(np.mean(means))
    assert results.seed_deviation(found["iris", "sm"]) == pytest.approx(np.std(means, ddof=1))
    assert results.seed_deviation(found["glass", "sm"]) is None


def test_twins():
    found = results.collect(
        [made_record(name, "sm", 0, [1, 0]) for name in ("chess", "shuttle-small")]
    )
    assert found["chess", "sbm"] is found["chess", "sm"]
    assert ("shuttle-small", "sbm") not in found


def test_incomplete_folds():
    made = [made_record("iris", "sm", f, [1, 0], folds=3) for f in range(2)]
    assert results.collect(made) == {}
    assert cell(tables.table2(made, {}), "iris", "SM").ours == "—"


def test_different_rows_refused():
    found = results.collect([made_record("chess", m, 0, [1, 0], digest=m) for m in ("sm", "nb")])
    with pytest.raises(InputError, match="different splits"):
        results.count_wins(found, "sm", "nb", ["chess"], 0.05)
    with pytest.raises(InputError, match="tested on other rows of chess"):
        results.shared_figures(found, ["sm", "nb"], "accuracy")


def test_shared_figures():
    """Methods are compared on the seeds that all have."""
    made = fold_records({"sm": [4, 3, 4], "nb": [3, 1, 2]})
    made += fold_records({"sm": [0, 0, 0]}, seed=S + 1)
    found = results.collect(made)
    assert results.shared_figures(found, ["sm", "nb"], "accuracy") == {
        ("iris", "sm"): pytest.approx(11 / 12),
        ("iris", "nb"): pytest.approx(6 / 12),
    }


# --- tables ---


def test_table2():
    """Best of a row in bold, the published figure beside ours, missing stays missing."""
    made = [made_record("chess", "sm", 0, [1, 1, 1, 0]), made_record("chess", "nb", 0, [1, 0] * 2)]
    grid = tables.table2(made, results.collect(made))
    sm, nb, svm = (cell(grid, "chess", label) for label in ("SM", "NB", "SVM (paper)"))
    assert (sm.ours, sm.bold, sm.published) == ("75.00 ± 42.44", True, "95.50 ± 1.24")
    assert (nb.ours, nb.bold) == ("50.00 ± 49.00", False)
    assert (svm.ours, svm.published, svm.published_bold) == ("—", "98.50 ± 0.73", True)
    assert cell(grid, "chess", "SBM").ours == sm.ours
    assert cell(grid, "letter", "SM").published == ""  # N/A in the paper
    assert cell(grid, "chess", "seed sd").ours == "—"
    assert any("lymphography" in note and "every test fold" in note for note in grid.notes)


def test_table1():
    """Gap after a minute, the long run and the paper's side by side; bold where not above."""
    made = [
        gap_record("vehicle", "gap-sm", 0.004, "optimal"),
        gap_record("adult", "gap-sm", 3.0),
        gap_record("letter", "gap-sm", None),
        gap_record("vehicle", "proof-sm", 0.0, "optimal", 71.6),
        gap_record("letter", "proof-sm", 4.25, seconds=1800.0),
    ]
    grid = tables.table1(made)
    minute, proof, paper = grid.header[1:]
    proven, worse, unknown = (
        cell(grid, f"SM, {n}", minute) for n in ("vehicle", "adult", "letter")
    )
    assert (proven.ours, proven.bold) == ("0.00†", True)
    assert (worse.ours, worse.bold) == ("3.00", False)
    assert (unknown.ours, unknown.bold) == ("∞", False)
    assert cell(grid, "SM, vehicle", proof).ours == "proved in 72 s"
    assert cell(grid, "SM, letter", proof).ours == "4.25 after 1800 s"
    assert cell(grid, "SM, adult", paper).ours == "2.42"
    assert cell(grid, "SBM, adult", minute).ours == "3.00"  # two classes: the same search
    assert cell(grid, "SBM, letter", proof).ours == "—"


def test_table3():
    """Wins of the row over the column beside the published ones, and on common sets."""
    made = [made_record("chess", "sm", 0, [1] * 5 + [0]), made_record("chess", "nb", 0, [0] * 6)]
    found = results.collect(made)
    grid = tables.table3(made, found)
    assert (cell(grid, "SM", "NB").ours, cell(grid, "SM", "NB").published) == ("1/1", "18/14")
    assert cell(grid, "NB", "SM").ours == "0/0"
    common = dict(tables.common_wins(found).rows)["SM over NB"]
    assert [c.ours for c in common] == ["1", "1.0 (1-1)", "1", "1.0 (1-1)", "1"]
    assert dict(tables.common_wins(found).rows)["SM over TAN"][1].ours == "—"


def test_lost_wins():
    """A set on which the paper surely wins and ours does not is named, with what differs: the paper
    has 95.50 and 87.34.
    """
    made = [made_record("chess", m, 0, [1, 0]) for m in ("sm", "nb")]
    rows = dict(tables.lost_wins(results.collect(made)).rows)
    told = "chess (0 of 1 seeds; -45.5, -37.3)"
    assert [cell.ours for cell in rows["SM over NB"]] == [told, told]
    assert [cell.ours for cell in rows["SM over TAN"]] == ["none", "none"]


def test_written_tables(tmp_path, capsys):
    """`tables` prints Markdown and writes Markdown, CSV and HTML; mixtures are told."""
    made = [
        made_record(name, m, 0, [1, 1, m != "nb", 0], loss=0.1 * len(m))
        for name, m in itertools.product(("chess", "adult", "nursery"), ("nb", "sm", "hgb"))
    ]
    made.append(gap_record("vehicle", "gap-sm", 1.0))
    made[0]["quick"], made[0]["origin"] = True, ORIGIN | {"engine": "e2"}
    for record in made:
        records.append_record(record, tmp_path / "records")
    for method in ("nb", "sm"):
        record = made_record("adult", method, 0, [1, 0], rows=100)
        records.append_record(record, tmp_path / "curves")
    assert main(["tables", "--records", str(tmp_path / "records")]) == 0
    text = capsys.readouterr().out
    assert text.startswith((tmp_path / "tables.md").read_text(encoding="utf-8"))
    assert all(f"Table {k}." in text for k in (1, 2, 3))
    assert "Learning curves on adult" in text
    assert "MIXED: records of 2 engine versions (e1: 9, e2: 1)" in text
    assert "QUICK" in text
    assert "QUICK" in (tmp_path / "tables.html").read_text(encoding="utf-8")
    with (tmp_path / "table2.csv").open(encoding="utf-8", newline="") as file:
        rows = {(r["row"], r["column"]): r for r in csv.DictReader(file)}
    assert rows["chess", "SM"]["ours"].startswith("75.00")
    assert rows["chess", "NB"]["best"] == "0"
    assert rows["iris", "SM"]["ours"] == ""
    assert len(rows) == 31 * (len(tables.TABLE2_METHODS) + 1)


@pytest.mark.filterwarnings("ignore")  # matplotlib's own; docutils renames an argument
def test_page(tmp_path):
    core = pytest.importorskip("docutils.core", reason="docutils is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    made = [gap_record("vehicle", "gap-sm", 1.0)]
    for method, name in itertools.product(("sm", "nb", "hgb"), ("chess", "mushroom", "adult")):
        made.append(made_record(name, method, 0, [1, 1, len(method) > 2, 0], loss=len(name) / 10))
    text = page.write(made, [], [], tmp_path / "results.rst")
    assert "Table 2. Mean classification accuracy" in text
    commit = made[0]["origin"]["commit"]
    assert f"Records of commit {commit}: HistGradientBoosting, NB, SM, table 1." in text
    assert "figure:: _static/experiments/critical_log_loss.svg" in text
    assert (tmp_path / "_static" / "experiments" / "critical_log_loss.svg").exists()
    assert text.count("Not run yet.") == 2  # learning curves and missing features
    plain = text.replace(":doc:", ":literal:")
    writer = import_module("docutils.writers").get_writer_class("html")()
    html = core.publish_string(plain, writer=writer, settings_overrides={"halt_level": 2})
    assert html.count(b"<table") >= 10
    assert "Not run yet" in page.write([], [], [], tmp_path / "empty.rst")


def test_extended():
    """Means over the sets that all have; the others are named; the best of a set in bold."""
    made = [
        made_record("nursery", "sm", 0, [1, 1], loss=0.1),
        made_record("nursery", "nb", 0, [1, 0], loss=0.7),
        made_record("letter", "sm", 0, [1, 0], loss=0.2),
    ]
    made_grids = comparison.grids(results.collect(made))
    overview = dict(made_grids["extended"].rows)
    assert [c.ours for c in overview["NB"]] == [
        "50.00", "2.00", "0.7000", "2.00", "0.7000", "1.00", "0.50",
    ]  # fmt: skip
    assert "Over the 1 data sets that all 2 methods have." in made_grids["extended"].notes
    assert [c.ours for c in dict(made_grids["duels-sm"].rows)["NB"]] == [
        "1", "1/0/0 (1.000)", "1/0/0 (1.000)",
    ]  # fmt: skip
    losses = made_grids["log_loss"]
    assert (cell(losses, "nursery", "SM").bold, cell(losses, "nursery", "NB").bold) == (1, 0)
    assert cell(losses, "letter", "NB").ours == "—"


# --- which methods differ ---


def test_ranks_and_duels():
    """Ranks share ties, ties by rounding are ties, and lower log loss is better."""
    third = 1 / 3
    found = {("s", "nb"): 1 - 2 * third, ("s", "tan"): third, ("s", "hgb"): 0.9}
    found |= {("t", "nb"): 0.5, ("t", "tan"): 0.6, ("t", "hgb"): 0.4, ("u", "nb"): 0.1}
    methods = ["nb", "tan", "hgb"]
    assert results.common_sets(found, methods) == ["s", "t"]
    assert critical.mean_ranks(found, methods, True) == {"nb": 2.25, "tan": 1.75, "hgb": 2}
    assert critical.mean_ranks(found, methods, False) == {"nb": 1.75, "tan": 2.25, "hgb": 2}
    result = critical.duel(found, "nb", "tan", True)
    assert (result.won, result.tied, result.lost) == (0, 1, 1)
    assert critical.duel(found, "nb", "tan", False).won == 1
    assert critical.duel(found, "nb", "nb", True).p_value is None


def test_wilcoxon_by_enumeration():
    """The p-value is the share of sign patterns with a rank sum at least as extreme."""
    gains = np.array([0.1, -0.2, 0.35, 0.4, 0.55, 0.6, -0.05])
    found = {(f"s{i}", "nb"): g for i, g in enumerate(gains)}
    found |= {(f"s{i}", "tan"): 0.0 for i in range(len(gains))}
    ranks = np.abs(gains).argsort().argsort() + 1
    centre = ranks.sum() / 2
    seen = abs(ranks[gains > 0].sum() - centre)
    sums = [np.dot(signs, ranks) for signs in itertools.product((0, 1), repeat=len(gains))]
    expected = np.mean([abs(s - centre) >= seen for s in sums])
    assert critical.duel(found, "nb", "tan", True).p_value == pytest.approx(expected)


def test_holm():
    """Of 0.01, 0.02 and 0.03 all stand at 5 % with Holm (0.0167, 0.025, 0.05); 0.03 first ends."""
    first = {("a", "b"): 0.01, ("a", "c"): 0.02, ("b", "c"): 0.03}
    assert critical.holm(first) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert critical.holm(first | {("a", "c"): 0.03}) == [("a", "b")]


def many_figures():
    """Ten sets; a is always best, b and c change places, d is always worst."""
    rng = np.random.default_rng(0)
    found = {}
    for s in range(10):
        base = rng.random()
        swap = 0.01 if s % 2 else -0.01
        for name, gain in (("nb", 1.0), ("tan", 0.5 + swap), ("mdl", 0.5 - swap), ("sm", 0.0)):
            found[f"s{s}", name] = base + gain + 1e-4 * s
    return found


def test_compare():
    """Friedman as scipy has it; bars join what does not differ and nothing else."""
    methods = ["sm", "mdl", "tan", "nb"]
    result = critical.compare(many_figures(), methods, True)
    assert list(result.ranks) == ["nb", "mdl", "tan", "sm"]
    assert result.ranks["nb"] == 1.0
    table = [[many_figures()[f"s{s}", m] for s in range(10)] for m in methods]
    assert result.friedman == pytest.approx(friedmanchisquare(*table).pvalue)
    assert result.cliques() == [(1, 2)]
    assert ("nb", "sm") in result.differing
    assert ("mdl", "tan") not in result.differing
    told = critical.statement(result, "mdl", LABELS, "Accuracy")
    assert "better than SM; worse than NB; no difference shown to TAN" in told
    assert critical.compare(many_figures(), ["nb", "sm"], True) is None


def test_critical_difference():
    """Nemenyi's constants: 1.960 for two methods and 2.728 for five (Demsar 2006, table 5)."""
    assert critical.critical_difference(2, 1) == pytest.approx(1.960, abs=5e-4)
    assert critical.critical_difference(5, 5) == pytest.approx(2.728, abs=1e-3)


# --- learning curves and figures ---


def test_learning_curves():
    """Points stand at the rows learned from; a method with one point has no curve."""
    made = [made_record("adult", "nb", 0, [1, 0], rows=100, loss=0.9)]
    made += [made_record("adult", "nb", 0, [1, 1], loss=0.3)]
    made += [made_record("adult", "sm", 0, [1, 1]), made_record("iris", "nb", 0, [1, 1], rows=100)]
    curves = learning_curves.collect(made)
    assert curves == {
        ("adult", "nb"): {
            100: {"accuracy": 0.5, "log_loss": 0.9},
            5000: {"accuracy": 1.0, "log_loss": 0.3},
        }
    }
    (grid,) = learning_curves.grids(made)
    assert cell(grid, "NB", "100").ours == "50.00 / 0.9000"
    assert learning_curves.sizes(2301, learning_curves.ROWS) == [100, 300, 1000]
    assert learning_curves.collect(learning_curves.with_last_points(made[:1], made[1:])) == curves


@pytest.mark.filterwarnings("ignore")  # matplotlib's own
def test_figures(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    made = [gap_record("vehicle", "gap-sm", 1.0)]
    for method, name in itertools.product(("sm", "nb", "svm"), ("chess", "mushroom", "adult")):
        made.append(made_record(name, method, 0, [1, 1, len(method) > 2, 0]))
    curves = [made_record("adult", "nb", 0, [1, 0], rows=rows) for rows in (100, None)]
    names = [path.name for path in figures.write(made, curves, tmp_path)]
    assert names == [
        "anytime.svg",
        "scatter.svg",
        "critical_accuracy.svg",
        "critical_log_loss.svg",
        "learning_curves.svg",
    ]
    assert all("<svg" in (tmp_path / name).read_text() for name in names)
    assert figures.write([], [], tmp_path) == []
