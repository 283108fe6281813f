"""What is fuzzed: every reader, and the estimators.

A target takes the bytes of one input and a folder of its own. It puts the bytes into a file, reads
it as a user would, and, where the content was accepted, uses the result once: a network is
written and read again, a classifier predicts, a problem of few variables is solved. A file that is
accepted and breaks later is a finding like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fuzz.frames import fit_and_predict, fit_everything
from fuzz.proofs import resume, solve_all, verify
from marginbn.classifiers.model_file import load_model
from marginbn.data.table import Table, read_table
from marginbn.export.formats import NETWORK_FORMATS, load_network
from marginbn.export.jkl import load_scores, problem_from_jkl, problem_to_jkl
from marginbn.network.network import BayesianNetwork
from marginbn.report.summary import describe
from marginbn.solvers import get_solver, solve_structure

Run = Callable[[bytes, Path], None]

_SMALL = 6
"""Variables up to which a problem that was read is solved as well."""


@dataclass(frozen=True)
class Target:
    """Something that reads bytes.

    Parameters
    ----------
    name
        What the command line calls it.
    run
        One run: bytes and a folder.
    json
        Whether inputs are mutated as JSON values as well as bytes.
    tokens
        Words of the format that mutations may insert.
    prepare
        What imports and compiles everything that runs may need.
    """

    name: str
    run: Run
    json: bool = False
    tokens: tuple[str, ...] = ()
    prepare: Callable[[], None] | None = None


def _put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def _table_target(suffix: str) -> Run:
    def run(data: bytes, folder: Path) -> None:
        path = _put(folder, f"table{suffix}", data)
        _use_table(read_table(path))
        for kinds in ("categorical", "numeric"):
            _use_table(read_table(path, kinds=kinds))  # type: ignore[arg-type]

    return run


def _use_table(table: Table) -> None:
    assert len(set(table.names)) == table.n_columns
    for column in table.columns:
        assert len(column.values) == len(column.missing) == table.n_rows
        assert np.isfinite(column.numbers[~np.isnan(column.numbers)]).all()
        assert ((column.codes >= -1) & (column.codes < len(column.categories))).all()


def _network_target(format_name: str) -> Run:
    def run(data: bytes, folder: Path) -> None:
        path = _put(folder, f"network.{format_name}", data)
        network = load_network(path, format_name)
        _use_network(network)
        text = NETWORK_FORMATS[format_name].to_text(network)
        path.write_bytes(text.encode())
        _assert_same(load_network(path, format_name), network)

    return run


def _use_network(network: BayesianNetwork) -> None:
    assert network.n_variables >= 1
    for table in network.log_tables:
        assert not np.isnan(table).any()
        assert (table <= 1e-6).all()
    if network.n_variables <= _SMALL:
        network.marginals()


def _assert_same(found: BayesianNetwork, expected: BayesianNetwork) -> None:
    assert found.structure == expected.structure
    assert found.variables == expected.variables
    for one, other in zip(found.log_tables, expected.log_tables, strict=True):
        np.testing.assert_allclose(np.exp(one), np.exp(other), rtol=1e-9, atol=1e-300)


def _model_target(data: bytes, folder: Path) -> None:
    classifier = load_model(_put(folder, "model.json", data))
    n_features = classifier.n_features_in_
    if n_features > 30:
        return
    describe(classifier)
    probabilities = classifier.predict_proba([[None] * n_features, ["x"] * n_features])
    assert not np.isnan(probabilities).any()


def _scores_target(data: bytes, folder: Path) -> None:
    problem = load_scores(_put(folder, "scores.jkl", data))
    again = problem_from_jkl(problem_to_jkl(problem))
    assert again.candidates.parents == problem.candidates.parents
    assert np.array_equal(again.linear, problem.linear)
    if problem.n_variables <= _SMALL and get_solver("dp").can_solve(problem) is None:
        result = solve_structure(problem, "dp", time_limit=1.0)
        assert result.bound >= result.objective


_BIF_TOKENS = (
    "network", "variable", "probability", "type discrete", "table", "default", "property", "//",
    "/*", "*/", "{", "}", "[", "]", "(", ")", "|", ";", "1e999", "nan", "-1", "\\u{41}", '"',
)  # fmt: skip
_ARFF_TOKENS = (
    "@relation", "@attribute", "@data", "numeric", "real", "string", "date", "{", "}", "?", "%",
    "'", '"', "\\'", "1e999", "nan", "relational",
)  # fmt: skip
_CSV_TOKENS = ('"', '""', ",", ";", "\t", "|", "\r\n", "?", "NA", "nan", "1e999", "0x1", "1_0")

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("csv", _table_target(".csv"), tokens=_CSV_TOKENS),
        Target("gzip", _table_target(".csv.gz"), tokens=("\x1f\x8b",)),
        Target("arff", _table_target(".arff"), tokens=_ARFF_TOKENS),
        Target("parquet", _table_target(".parquet"), tokens=("PAR1",)),
        Target("model", _model_target, json=True),
        Target("network", _network_target("json"), json=True),
        Target("bif", _network_target("bif"), tokens=_BIF_TOKENS),
        Target("jkl", _scores_target, tokens=("1e999", "nan", "-inf", "1e308", "999999999")),
        Target("certificate", verify, json=True, prepare=solve_all),
        Target("checkpoint", resume, json=True, prepare=solve_all),
        Target("estimator", fit_and_predict, prepare=fit_everything),
    )
}
"""All targets by name."""
