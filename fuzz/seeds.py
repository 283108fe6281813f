"""Where fuzzing begins: files of other programs, what our own writers make, and known attacks."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.proofs import certificate_seeds, checkpoint_seeds
from fuzz.targets import Target
from marginbn import Search
from marginbn.classifiers import (
    BaseBNClassifier,
    GenerativeBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    TANClassifier,
)
from marginbn.classifiers.model_file import save_model
from marginbn.exceptions import MarginBNError
from marginbn.export.formats import NETWORK_FORMATS
from marginbn.export.jkl import problem_to_jkl
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure

PROJECT = Path(__file__).resolve().parents[1]
KEPT = PROJECT / "tests" / "fuzz_corpus"
"""Inputs that were findings once, a folder per target; corpora of past runs, an archive each."""

_FILES = PROJECT / "tests" / "files"
MAX_SEED_BYTES = 20_000


def kept_inputs(target: str) -> list[Path]:
    """Inputs kept for a target, in order of their names."""
    return sorted(p for p in (KEPT / target).glob("*") if p.is_file())


def packed_inputs(target: str) -> list[bytes]:
    """Inputs of past runs that reached something new, in order of their names."""
    path = KEPT / f"{target}.zip"
    if not path.exists():
        return []
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name) for name in sorted(archive.namelist())]


def pack_inputs(target: str, inputs: list[bytes]) -> None:
    """Write the archive of a target; the same inputs make the same bytes."""
    KEPT.mkdir(exist_ok=True)
    with zipfile.ZipFile(KEPT / f"{target}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for data in sorted(inputs):
            digest = hashlib.sha1(data, usedforsecurity=False).hexdigest()[:16]
            archive.writestr(zipfile.ZipInfo(digest), data, zipfile.ZIP_DEFLATED)


def seeds(target: str) -> list[bytes]:
    """All inputs that fuzzing of a target begins with."""
    found = [*_written(target), *_foreign(target), *map(str.encode, _ATTACKS.get(target, ()))]
    found += [path.read_bytes() for path in kept_inputs(target)] + packed_inputs(target)
    return [data for data in found if len(data) <= MAX_SEED_BYTES]


def plant_seeds(target: str, corpus: Path) -> None:
    """Put the seeds of a target into a corpus, each under the digest of its content."""
    for data in seeds(target):
        path = corpus / hashlib.sha1(data, usedforsecurity=False).hexdigest()
        if not path.exists():
            path.write_bytes(data)


def warm_up(target: Target, folder: Path) -> None:
    """Run the seeds unwatched: imports on first use, caches and compilation execute code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if target.prepare is not None:
            target.prepare()
        for data in seeds(target.name):
            with contextlib.suppress(MarginBNError):
                target.run(data, folder)


def _foreign(target: str) -> Iterator[bytes]:
    if target == "bif":
        yield from (path.read_bytes() for path in sorted(_FILES.glob("*.bif")))


def _written(target: str) -> Iterator[bytes]:
    if target in ("csv", "gzip", "arff", "parquet"):
        yield from _tables(target)
    elif target in ("bif", "network"):
        form = NETWORK_FORMATS["json" if target == "network" else target]
        yield from (form.to_text(network).encode() for network in _networks())
    elif target == "model":
        yield from _models()
    elif target == "jkl":
        yield _scores()
    elif target == "certificate":
        yield from certificate_seeds()
    elif target == "checkpoint":
        yield from checkpoint_seeds()
    elif target == "estimator":
        rng = np.random.default_rng(0)
        yield from (rng.integers(0, 256, size, dtype=np.uint8).tobytes() for size in (20, 60, 120))
        yield from (bytes([kind, 0, 9, 3, 0, 1, 2, 0]) * 8 for kind in range(8))


_CSV = 'colour,size,"the, class"\nred,1.5,a\n"gr""een",?,b\nblue,2,\n ,NA,a\n1,0,b\n'
_ARFF = """@relation r
@attribute colour {red, 'dark blue', "x\\"y"}
@attribute size numeric
@attribute 'free text' string
@data
red, 1.5, hello
'dark blue', ?, 'it\\'s'
{0 red, 2 abc}
% comment
"x\\"y",2,"a,b"
"""


def _tables(target: str) -> Iterator[bytes]:
    if target == "csv":
        yield _CSV.encode()
        yield b"a;b;c\n1;2;3\n4;5;6\n"
        yield "\ufeffa\tb\r\n1e5\t-0.0\r\n".encode()
    elif target == "gzip":
        yield gzip.compress(_CSV.encode(), mtime=0)
        yield gzip.compress(b"a,b\n1,2\n", mtime=0) * 2
    elif target == "arff":
        yield _ARFF.encode()
    else:
        yield from _parquet()


def _parquet() -> Iterator[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, list[Any]] = {"a": ["x", None, "y"], "b": [1.5, 2.0, None], "c": [1, 2, 3]}
    for compression in ("none", "snappy"):
        stream = io.BytesIO()
        pq.write_table(pa.table(columns), stream, compression=compression)
        yield stream.getvalue()


@cache
def _networks() -> tuple[BayesianNetwork, ...]:
    with np.errstate(divide="ignore"):
        rain = np.log([0.8, 0.2])
        sprinkler = np.log([[0.6, 0.3, 0.1], [0.97, 0.02, 0.01]])
        grass = np.log(np.array([[[1.0, 0.0], [0.1, 0.9], [0.5, 0.5]]] * 2))
    plain = (
        Variable("rain", ("no", "yes")),
        Variable("sprinkler", ("off", "low", "high")),
        Variable("grass", ("dry", "wet")),
    )
    nasty = (
        Variable('a "b', ("", " x")),
        Variable("é{};|", ("\n", "\\u{41}", "<&>")),
        Variable("v", ("0", "%")),
    )
    parents = Structure(((), (0,), (0, 1)))
    tables = (rain, sprinkler, grass)
    return tuple(BayesianNetwork(parents, variables, tables) for variables in (plain, nasty))


def _models() -> Iterator[bytes]:
    X = [["red", 0.1, 1], ["red", 0.4, 2], ["blue", 0.5, 1], ["blue", None, 2], ["", 0.3, 2]] * 3
    y = ["a", "b", "b", "a", "a"] * 3
    classifiers: tuple[BaseBNClassifier, ...] = (
        NaiveBayesClassifier(missing="state"),
        TANClassifier(missing="state", column_kinds={1: "numeric"}),
        GenerativeBNClassifier(missing="state", search=Search(solver="dp"), score="bdeu"),
        MaxMarginBNClassifierCV(missing="state", gammas=[0.5], max_parents=(1,), cv=2),
        MaxMarginBNClassifierCV(missing="state", gammas=[2.0], max_parents=(1,)),
    )
    with tempfile.TemporaryDirectory() as folder:
        for classifier in classifiers:
            save_model(classifier.fit(X, y), Path(folder) / "m.json")
            yield (Path(folder) / "m.json").read_bytes()


def _scores() -> bytes:
    from marginbn.problem.candidates import enumerate_candidates
    from marginbn.problem.problem import StructureProblem

    candidates = enumerate_candidates(3, 2, class_restricted=False)
    variables = tuple(Variable(name, ("0", "1")) for name in ("rain", "two words", "g"))
    scores = np.linspace(-9.5, -1.25, candidates.n_candidates)
    return problem_to_jkl(StructureProblem(candidates, scores, variables)).encode()


_ATTACKS: dict[str, tuple[str, ...]] = {
    "network": ("[" * 5000, '{"a":' * 3000, '{"format": "marginbn-network", "version": 1e9}'),
    "model": ("[" * 5000, '{"format": "marginbn-model", "version": 1, "estimator": "os.system"}'),
    "bif": ("variable a { type discrete [ 1000000 ] { x }; }", "{" * 5000, "/*" * 2000),
    "jkl": ("1\na 1000000\n-1 0\n", "2\na 1\n-1 1 b\nb 1\n-1 1 a\n", "1000000000\n"),
    "csv": ("a,b\n" + '"' * 3000, "a\n" + "x" * 5000),
    "arff": ("@attribute a {" + "x," * 2000, "@attribute a numeric\n@data\n{0 1,0 1}\n"),
}
