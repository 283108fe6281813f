"""The second checker: by hand, against brute force, against forgeries, and on its own."""

from __future__ import annotations

import ast
import itertools
import json
import math
import shutil
import subprocess
import sys
import zlib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from test_certificate import tiny_certificate

import oracles
from certificates import certified, rebuild, sealed, second_opinion, with_header_text
from marginbn.problem.candidates import CandidateRule, enumerate_candidates
from marginbn.problem.scores import SCORES, get_local_score
from marginbn.proof import exact
from marginbn.proof.certificate import (
    CLUSTERS,
    EDGE,
    FOREST,
    MAGIC,
    Candidates,
    Certificate,
    Data,
    Score,
    encode_certificate,
)
from marginbn.proof.checker import verify_certificate
from marginbn.scoring.local_scores import linear_problem
from problems import random_candidates, random_table, small_margin_problem

FILE = Path(exact.__file__)

Capture = pytest.CaptureFixture[str]


def run(certificate: Certificate | bytes, folder: Path) -> int:
    path = folder / "proof.cert"
    packed = certificate if isinstance(certificate, bytes) else encode_certificate(certificate)
    path.write_bytes(packed)
    return exact.main([str(path)])


# ---------------------------------------------------------------------------------- by hand


def test_a_claim_one_can_check_by_hand(tmp_path: Path, capsys: Capture) -> None:
    """Eighteen rows of margin 2 make 36, and no structure has more: exact numbers on the screen."""
    assert run(tiny_certificate(), tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "VERIFIED"
    assert "structure: 36 <= score <= 36" in lines
    assert "any structure: score <= 36 (1 leaves)" in lines
    assert f"claimed: objective 36, bound {Fraction(36.0 + 1e-9)}" in lines


def test_claims_are_compared_exactly() -> None:
    """18 log 10 lies between two neighbouring doubles: the lower one is no bound, the upper is."""
    score = 18 * math.log(10)
    below = [score, math.nextafter(score, 0)][Fraction(score) > 18 * log_ten()]
    above = math.nextafter(below, 50)
    close = tiny_certificate(3.0, share=2, objective=below, bound=above)
    assert second_opinion(close) == ""
    assert "may score up to 41.44653167389282231232384618" in second_opinion(
        replace(close, bound=below)
    )
    assert "scores at most 41.44653167389282231232384618" in second_opinion(
        replace(close, objective=above)
    )
    assert not verify_certificate(close)  # its grid is coarser


def log_ten() -> Fraction:
    return Fraction("2.302585092994045684017991454684364207601101488628772976033")


# ---------------------------------------------------------------------------------- forgeries


def one_heavy_row(weight: float, objective: float, bound: float) -> Certificate:
    """K2 of one row, two binary variables: log Gamma(2) Gamma(1 + W) / Gamma(2 + W) for each, so
    every structure has -2 log(1 + W).
    """
    codes = np.zeros((1, 2), dtype=np.int32)
    data = Data(("class", "x"), (("a", "b"), ("0", "1")), codes, np.array([weight]))
    return Certificate(
        data.fingerprint(), data, Score("k2"),
        Candidates(None, (((),), ((), (0,)))), ((), ()),
        objective, bound, -30, np.array([FOREST, 0], dtype=np.int32),
    )  # fmt: skip


@pytest.mark.parametrize("weight", [7.181977842906551e60, 1e80, 1e45, 1e99, 1e-99, 1e9])
def test_heavy_rows_keep_their_digits(weight: float) -> None:
    """A1: the truth passes to twelve digits, whatever the weight; 10^-11 more does not."""
    truth = -2 * math.log1p(weight)
    room = 1e-12 * abs(truth) + 1e-35
    assert second_opinion(one_heavy_row(weight, truth - room, truth + room)) == ""
    for objective, bound in ((truth + 10 * room, 1e3), (truth - 10 * room, truth - 5 * room)):
        assert second_opinion(one_heavy_row(weight, objective, bound))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"objective": 36.0', '"objective": 36.0, "objective": 35.0'),
        ('"gamma": 2.0', '"gamma": 2.0, "gamma": 2.0'),
        ('"gamma": 2.0', '"gamma": NaN'),
        ('"gamma": 2.0', '"gamma": 1e999'),
        ('"gamma": 2.0', '"gamma": "2.0"'),
        ('"gamma": 2.0, ', ""),
        ('"grid": -36', '"grid": -36, "note": 1'),
        ('"grid": -36', '"grid": -36.0'),
        ('"n_samples": 2', '"n_samples": true'),
        ('"n_samples": 2', '"n_samples": -2'),
        ('"n_samples": 2', '"n_samples": 0'),
        ('"n_samples": 2', '"n_samples": 1000000000000000000000'),
        ('"tree": 2', '"tree": 3'),
        ('"duals": [1]', '"duals": [0]'),
        ('"duals": [1]', '"duals": [25]'),
        ('["a", "b"]', '"ab"'),
        ('["a", "b"]', '["a"]'),
        ('"class"', '"\\ud800"'),
        ('{"fingerprint"', '[{"fingerprint"'),
        ('{"fingerprint"', "[" * 100000 + '{"fingerprint"'),
    ],
)
def test_headers_that_are_not_as_described(old: str, new: str, tmp_path: Path) -> None:
    """A12: repeated keys, numbers that are none, keys too many or too few: exit code 2."""
    assert (
        run(with_header_text(tiny_certificate(), lambda text: text.replace(old, new)), tmp_path)
        == 2
    )


def test_files_that_are_no_certificates(tmp_path: Path, capsys: Capture) -> None:
    good = encode_certificate(tiny_certificate())
    content = zlib.decompress(good[len(MAGIC) :])
    for bad in (
        b"", b"PK", good[:-1], good[:40], good + b"x", MAGIC + b"abc", MAGIC,
        MAGIC + zlib.compress(content[:-1]), MAGIC + zlib.compress(content + b"x"),
        MAGIC + zlib.compress(b"\xff" * 8), MAGIC + zlib.compress(content[:3]),
    ):  # fmt: skip
        assert run(bad, tmp_path) == 2
        assert capsys.readouterr().out.startswith("UNREADABLE\n")
    assert exact.main([str(tmp_path / "missing")]) == 2
    assert exact.main([]) == 2


def test_small_files_cannot_ask_for_all_memory(tmp_path: Path) -> None:
    """A13: 20000 rows and classes, all zero, are 150 kB; told before anything is made of them."""
    labels = tuple(str(c) for c in range(20_000))
    data = Data(("class",), (labels,), np.zeros((20_000, 1), dtype=np.int32), np.ones(20_000))
    bomb = replace(
        tiny_certificate(), data=data, fingerprint=data.fingerprint(), incumbent=((),), duals=(),
        candidates=Candidates(None, (((),),)),
    )  # fmt: skip
    assert "too large" in second_opinion(bomb)
    many = CandidateRule(40, False, required=(), forbidden=(), constant=())
    names = tuple(f"x{i}" for i in range(80))
    wide = Data(names, (("a", "b"),) * 80, np.zeros((1, 80), dtype=np.int32), np.ones(1))
    rule = replace(bomb, data=wide, candidates=replace(bomb.candidates, rule=many, listed=()))
    assert "too large" in second_opinion(sealed(rule))


def test_deep_trees_are_no_recursion() -> None:
    """A13: a chain of 20000 splits has one more leaf, and costs a chain."""
    chain = np.array([EDGE, 0, 1, FOREST, 0] * 20_000 + [FOREST, 0], dtype=np.int32)
    checker = exact.Checker(encode_certificate(replace(tiny_certificate(), tree=chain)))
    assert checker.check()[3] == 20_001


# ---------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("power", [*range(-300, 301, 25), -1, 0, 1, 2, 45, 60, 80])
def test_log_gamma_keeps_its_promise(power: int) -> None:
    """Recurrence and duplication formula hold from 1e-300 to 1e300, within units of 1e-40."""
    x = Fraction(10) ** power * Fraction(7, 3)
    lo, hi = exact.log_gamma(x)
    assert 0 < hi - lo <= 12
    half, double = exact.log_gamma(x + Fraction(1, 2)), exact.log_gamma(2 * x)
    root = exact.log_gamma(Fraction(1, 2))
    digits = 60 + 310
    two = Fraction(exact.ln(2, digits) * exact.SCALE, 10**digits)
    wanted = (1 - 2 * x) * two  # Gamma(x) Gamma(x + 1/2) = 2^(1 - 2x) Gamma(1/2) Gamma(2x)
    least, most = lo + half[0] - double[1] - root[1], hi + half[1] - double[0] - root[0]
    assert least - 1 <= wanted <= most + 1
    step, log_x = exact.log_gamma(x + 1), exact.log(x.numerator, x.denominator)
    assert lo + log_x[0] <= step[1] + 1
    assert step[0] <= hi + log_x[1] + 1


def test_log_gamma_of_whole_numbers() -> None:
    for n in (1, 2, 3, 10, 39, 40, 41, 100, 1000):
        lo, hi = exact.log_gamma(Fraction(n))
        low, high = exact.log(math.factorial(n - 1), 1)
        assert lo <= high
        assert low <= hi


FORMULAS = sorted({str(entry.certificate) for entry in SCORES.values()})


@pytest.mark.parametrize("weights", [(), (1.0, 0.3), (0.47, 1.0), (1.0, 2.7, 3.32)])
@pytest.mark.parametrize("name", FORMULAS)
def test_local_scores_are_those_of_the_package(name: str, weights: tuple[float, ...]) -> None:
    """Of any weights, and of rows of weight one among others."""
    data = random_table(np.random.default_rng(3), 40, 3, 3, weighted=True).encoded().merged()
    if weights:
        data = replace(data, weights=np.resize(weights, data.n_samples))
    problem = linear_problem(
        data, enumerate_candidates(4, 3, class_restricted=False), get_local_score(name, 2.5)
    )
    checker = checker_of(data, Score(name, equivalent_sample_size=2.5), problem.candidates.parents)
    for k, wanted in enumerate(problem.linear):
        lo, hi = checker.local_score(k)
        assert float(Fraction(lo, checker.unit * exact.SCALE)) == pytest.approx(wanted)
        assert 0 <= hi - lo <= 10**6 * checker.unit


def test_any_rule_makes_the_package_s_candidates() -> None:
    rng = np.random.default_rng(1)
    found = [made for made in (random_candidates(rng) for _ in range(100)) if made is not None]
    assert len(found) > 60
    for made in found:
        assert made.rule is not None
        own = object.__new__(exact.Checker)
        own.n = made.n_variables
        own.arities = [1 + (v not in made.rule.constant) for v in range(own.n)]
        own.h = {"candidates": {"rule": vars(made.rule), "listed": (), "loss": 0}}
        sets = [(i, s) for i in range(own.n) for s in own.sets_of(i)]
        assert sets == list(zip(made.child.tolist(), made.parents, strict=True))


@pytest.mark.parametrize(("restricted", "arcs"), [(False, "all"), (True, "some"), (True, "")])
def test_arcs_of_the_class_that_make_no_sense(restricted: bool, arcs: str) -> None:
    own = object.__new__(exact.Checker)
    own.n, own.arities = 2, [2, 2]
    rule = {"max_parents": 1, "class_restricted": restricted, "class_arcs": arcs}
    rule |= {"constant": (), "required": (), "forbidden": ()}
    own.h = {"candidates": {"rule": rule, "listed": (), "loss": 0}}
    with pytest.raises(exact.Refuted, match="class arcs"):
        own.sets_of(1)


def checker_of(data: object, score: Score, parents: tuple[tuple[int, ...], ...]) -> exact.Checker:
    """Data and candidates of a general network with a claim about nothing."""
    from marginbn.proof.definition import define_data

    defined = define_data(data)  # type: ignore[arg-type]
    n = len(defined.names)
    own = len(parents) // n
    listed = tuple(tuple(parents[i * own : (i + 1) * own]) for i in range(n))
    certificate = Certificate(
        defined.fingerprint(), defined, score, Candidates(None, listed), ((),) * n,
        -1e9, 1e9, -10, np.array([CLUSTERS, 0, 0], dtype=np.int32),
        multipliers=((),),
    )  # fmt: skip
    return exact.Checker(encode_certificate(certificate))


def test_no_float_is_computed_with() -> None:
    """The only floats are doubles of files on their way to fractions or back to their text; imports
    are standard.
    """
    tree = ast.parse(FILE.read_text(encoding="utf-8"))
    constants = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    assert not any(isinstance(value, float | complex) for value in constants)
    calls = [ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.Call)]
    assert [c for c in calls if c.startswith("float(")] == 3 * ["float(value)"]
    math_used = {
        n.attr
        for n in ast.walk(tree)
        if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "math"
    }
    assert math_used <= {"comb", "floor", "inf", "lcm", "prod"}
    imported = {
        (n.module or "") if isinstance(n, ast.ImportFrom) else n.names[0].name
        for n in ast.walk(tree)
        if isinstance(n, ast.Import | ast.ImportFrom)
    }
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


# ---------------------------------------------------------------------------------- forests


@pytest.mark.parametrize("seed", range(40))
def test_arborescences_by_brute_force(seed: int) -> None:
    """Value, and prices that bound the weight of those with given arcs from the root."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    weights = {
        (u, v): int(rng.integers(-20, 20))
        for v in range(1, n + 1)
        for u in range(n + 1)
        if u != v and rng.random() < 0.8
    }
    every = [tuple((u + 1) % (n + 1) for u in tree) for tree in oracles.arborescences(n)]
    trees = {
        parents: sum(weights[u, v] for v, u in enumerate(parents, 1))
        for parents in every
        if all((u, v) in weights for v, u in enumerate(parents, 1))
    }
    arcs = {v: [(w, u) for (u, b), w in weights.items() if b == v] for v in range(1, n + 1)}
    found = exact.best_arborescence(arcs)
    if not trees:
        assert found is None
        return
    assert found is not None
    value, prices = found
    assert value == max(trees.values())
    for parents, weight in trees.items():
        roots = [v for v, u in enumerate(parents, 1) if u == 0]
        assert weight <= value - sum(prices[v] - weights[0, v] for v in roots)


@pytest.mark.parametrize("seed", range(12))
def test_leaves_by_brute_force(seed: int, tmp_path: Path) -> None:
    """The maximum over forests with present edges is that of a list of all, class included."""
    certificate = certified(small_margin_problem(seed, n_features=3, n_rows=9), tmp_path)
    checker = exact.Checker(encode_certificate(certificate))
    candidates = rebuild(certificate).candidates
    values = checker.majorants(0)[0][2]
    rng = np.random.default_rng(seed)
    usable = [[k for k in group if rng.random() < 0.8] for group in checker.groups]
    pairs = list(itertools.combinations(range(4), 2))
    present = frozenset(pairs[a] for a in rng.permutation(len(pairs))[: int(rng.integers(3))])
    slots = [{candidates.parents[k]: values[k] for k in own} for own in usable]
    found = list(checker.bound_forests(slots, present, Fraction(-(10**300))))
    best = [
        sum(values[k] for k in chosen)
        for chosen in itertools.product(*usable)
        if holds(tuple(candidates.parents[k] for k in chosen), present)
    ]
    low = -sum(map(abs, values))
    assert max((v for v in found if v >= low), default=None) == max(best, default=None)


def holds(parents: tuple[tuple[int, ...], ...], present: frozenset[tuple[int, ...]]) -> bool:
    joined = all(a in parents[b] or b in parents[a] for a, b in present)
    return joined and not oracles.has_cycle(parents)


# ---------------------------------------------------------------------------------- alone


def test_it_runs_alone(tmp_path: Path) -> None:
    """One file, an interpreter without packages: no marginbn, no numpy; 0, 1 and 2 come out."""
    alone = tmp_path / "exact.py"
    shutil.copy(FILE, alone)
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_bytes(encode_certificate(tiny_certificate()))
    bad.write_bytes(encode_certificate(tiny_certificate(bound=35.0)))
    for argument, code, word in (
        (good, 0, "VERIFIED"),
        (bad, 1, "NOT VERIFIED"),
        (alone, 2, "UNREADABLE"),
    ):
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(alone), str(argument)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (code, "")
        assert done.stdout.splitlines()[0] == word


def test_it_says_what_was_proved(tmp_path: Path, capsys: Capture) -> None:
    """The score with its numbers, the rows, and the rule; a list is called a list."""
    certificate = certified(small_margin_problem(1, n_features=2), tmp_path)
    capsys.readouterr()
    assert run(certificate, tmp_path) == 0
    text = capsys.readouterr().out
    assert "score multiclass, gamma 1, smoothing 1" in text
    assert f"{len(certificate.data.codes)} rows" in text
    assert "'max_parents': 2" in text
    assert run(tiny_certificate(), tmp_path) == 0
    assert "candidates: 4, listed" in capsys.readouterr().out


WANTED: dict[str, object] = {"score": "multiclass", "gamma": 1.0, "max_parents": 2, "forbidden": []}


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (WANTED, ""),
        ({}, ""),
        ({"gamma": 2.0}, "gamma differ"),
        ({**WANTED, "listed": 3}, "listed differ"),
        ({"max_parents": 3, "data": "0"}, "max_parents, data differ"),
        ({"forbidden": [["x1", "x2"]]}, "forbidden differ"),
        ({"equivalent_sample_size": 1.0}, "equivalent_sample_size differ"),
    ],
)
def test_it_checks_a_statement_given_from_outside(
    wanted: dict[str, object], reason: str, tmp_path: Path, capsys: Capture
) -> None:
    """By the keys of a statement file."""
    certified(small_margin_problem(1, n_features=2), tmp_path)
    capsys.readouterr()
    [path] = tmp_path.iterdir()
    assert exact.main([str(path), "--statement", json.dumps(wanted)]) == bool(reason)
    text = capsys.readouterr().out
    assert text.startswith("NOT VERIFIED\nanother statement" if reason else "VERIFIED\n")
    assert reason in text


def test_a_statement_that_cannot_be_read_is_not_ignored(tmp_path: Path) -> None:
    """Whoever asks for something must not get an answer to nothing."""
    path = tmp_path / "proof.cert"
    path.write_bytes(encode_certificate(tiny_certificate()))
    for text in ("{", '{"gamma": 1, "gamma": 2}', '{"gama": 1}', '{"gamma": "1"}', "[1]", "3"):
        assert exact.main([str(path), "--statement", text]) == 2


def test_names_cannot_write_to_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    """Control characters of a file are shown escaped."""
    hostile = replace(tiny_certificate(), score=Score("\x1b[2J"))
    assert run(hostile, tmp_path) == 1
    assert "\x1b" not in capsys.readouterr().out
    packed = with_header_text(
        tiny_certificate(), lambda text: text.replace('"tree": 2', json.dumps("\x1b[2J") + ": 2")
    )
    assert run(packed, tmp_path) == 2
    assert "\x1b" not in capsys.readouterr().out
