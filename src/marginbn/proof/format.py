"""The certificate file: a line that names the format, then one compressed stream.

::

    marginbn certificate 1\\n
    zlib( length of the header (8 bytes) | header (JSON) | arrays )

``docs/theory/certificate_format.rst`` has the meaning of every key and array; ``exact.py`` reads
the file by that page alone. What changes here changes there.

Reading builds plain values and arrays only. The header is unfolded first and may be refused; every
length is checked before memory is taken.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import ProblemTooLargeError
from marginbn.files import (
    Count,
    MisfitError,
    PathLike,
    Shape,
    decode,
    naming_file,
    read_bytes,
    write_atomic,
)
from marginbn.problem.candidates import CandidateRule, ClassArcs
from marginbn.proof.certificate import (
    LARGEST_BITS,
    Candidates,
    Certificate,
    Data,
    DualWeights,
    Multipliers,
    NamedRow,
    RowKind,
    Score,
)

MAGIC = b"marginbn certificate 1\n"

MAX_BYTES = 2**30
"""Largest unfolded content that is read or written."""

MAX_HEADER = 2**25
"""Largest header: text unfolds to much larger values than arrays do."""

MAX_CELLS, MAX_TREE, MAX_MULTIPLIERS = 5 * 10**7, 2**22, 2 * 10**7
"""Largest number of samples times variables and classes (and of subsets of sets with scores), of
entries of the tree and of rows that multipliers name: more is refused before it is read.
"""

Indices = tuple[Count, ...]
Arcs = tuple[tuple[Count, Count], ...]


class _Rule(Shape, frozen=True):
    max_parents: Count
    class_restricted: bool
    required: Arcs
    forbidden: Arcs
    constant: Indices
    class_arcs: ClassArcs


class _Candidates(Shape, frozen=True):
    rule: _Rule | None
    listed: tuple[tuple[Indices, ...], ...]
    loss: float


class _Score(Shape, frozen=True):
    name: str
    gamma: float
    smoothing: float
    equivalent_sample_size: float


class _Header(Shape, frozen=True):
    fingerprint: str
    variables: Annotated[tuple[tuple[str, tuple[str, ...]], ...], msgspec.Meta(min_length=1)]
    n_samples: Count
    score: _Score
    candidates: _Candidates
    incumbent: tuple[Indices, ...]
    objective: float
    bound: float
    grid: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    tree: Count
    duals: tuple[tuple[int, int], ...]
    rows: tuple[tuple[RowKind, Indices], ...]
    multipliers: Count
    groups: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] = 0  # a key only where there are some
    scores: tuple[tuple[tuple[Indices, float], ...], ...] = ()  # and this one for given scores


def part_type(bits: int) -> np.dtype[Any]:
    """Type of the parts of dual weights with so many bits: 2^bits itself must fit."""
    return np.dtype("<u1" if bits < 8 else "<u2" if bits < 16 else "<u4")


def write_certificate(path: PathLike, certificate: Certificate) -> None:
    """Write a certificate, all or nothing."""
    write_atomic(path, encode_certificate(certificate))


def encode_certificate(certificate: Certificate) -> bytes:
    """The bytes of the file."""
    header = json.dumps(_header(certificate), allow_nan=False).encode()
    parts = [len(header).to_bytes(8, "little"), header, *_arrays(certificate)]
    size = sum(len(part) for part in parts)
    if size > MAX_BYTES or len(header) > MAX_HEADER:
        raise ProblemTooLargeError(
            f"the certificate would hold {size / 1e6:.0f} MB, more than {MAX_BYTES / 1e6:.0f} MB; "
            "raise gap_tolerance or lower time_limit, so that the tree stays smaller"
        )
    packer = zlib.compressobj(6)
    return MAGIC + b"".join(packer.compress(part) for part in parts) + packer.flush()


def _header(c: Certificate) -> dict[str, object]:
    return {
        "fingerprint": c.fingerprint,
        "variables": [[n, list(s)] for n, s in zip(c.data.names, c.data.states, strict=True)],
        "n_samples": len(c.data.codes),
        "score": vars(c.score),
        "candidates": {
            "rule": None if c.candidates.rule is None else vars(c.candidates.rule),
            "listed": c.candidates.listed,
            "loss": c.candidates.loss,
        },
        "incumbent": c.incumbent,
        "objective": c.objective,
        "bound": c.bound,
        "grid": c.grid,
        "tree": len(c.tree),
        "duals": [
            [d.bits, before] for d, before in zip(c.duals, _references(c.duals), strict=True)
        ],
        "rows": [[row.kind, row.members] for row in c.rows],
        "multipliers": len(c.multipliers),
        **({} if c.groups is None else {"groups": c.n_groups}),
        **({"scores": c.data.scores} if c.data.scores else {}),
    }


def _references(duals: tuple[DualWeights, ...]) -> list[int]:
    """The newest earlier vector of equal width: neighbours in the tree have similar weights."""
    newest: dict[np.dtype[Any], int] = {}
    references = []
    for number, dual in enumerate(duals):
        references.append(newest.get(part_type(dual.bits), -1))
        newest[part_type(dual.bits)] = number
    return references


def _arrays(c: Certificate) -> Iterator[bytes]:
    yield np.ascontiguousarray(c.data.codes.T, dtype="<i4").tobytes()
    yield np.ascontiguousarray(c.data.weights, dtype="<f8").tobytes()
    yield np.ascontiguousarray(c.tree, dtype="<i4").tobytes()
    if c.groups is not None:
        yield np.ascontiguousarray(c.groups, dtype="<i4").tobytes()
    for dual, before in zip(c.duals, _references(c.duals), strict=True):
        parts = dual.parts.astype(part_type(dual.bits))
        if before >= 0:
            parts = parts - c.duals[before].parts.astype(parts.dtype)  # unsigned: wraps around
        yield parts.tobytes()
    yield np.array([len(m.rows) for m in c.multipliers], dtype="<i4").tobytes()
    yield np.array([r for m in c.multipliers for r in m.rows], dtype="<i4").tobytes()
    yield np.array([y for m in c.multipliers for y in m.values], dtype="<f8").tobytes()


def read_certificate(path: PathLike, max_bytes: int = MAX_BYTES) -> Certificate:
    """Read a certificate; whatever is not as the format demands is a :class:`FormatError`."""
    content = read_bytes(path, max_bytes)
    with naming_file(path):
        return decode_certificate(content, max_bytes)


def decode_certificate(content: bytes, max_bytes: int = MAX_BYTES) -> Certificate:
    """The certificate in the bytes of a file; raises :class:`MisfitError`, and
    :class:`ProblemTooLargeError` by what the header says.
    """
    if not content.startswith(MAGIC):
        kind = MAGIC.decode().strip()
        raise MisfitError(
            f"this is no certificate that can be read: the first line is not {kind!r}"
        )
    cursor = Cursor(memoryview(content)[len(MAGIC) :], max_bytes)
    length = int(cursor.take("<i8", 1, "the length of the header")[0])
    if length > MAX_HEADER:
        raise MisfitError(f"the header would be longer than {MAX_HEADER} bytes")
    header = _read_header(cursor.take("<u1", length, "the header").tobytes())
    cursor.unfold_rest()
    certificate = _build(header, cursor)
    cursor.finish()
    return certificate


def _read_header(text: bytes) -> _Header:
    """The header, unless what follows would take too much memory or time."""
    header = decode(text, _Header, "header")
    json.loads(text, object_pairs_hook=refuse_repeated_keys)  # of which the last would count
    cells = header.n_samples * (len(header.variables) + len(header.variables[0][1]))
    subsets = sum(2 ** min(len(parents), 64) for own in header.scores for parents, _ in own)
    for what, size, most in (
        ("samples times variables and classes", cells, MAX_CELLS),
        ("subsets of sets with scores", subsets, MAX_CELLS),
        ("entries of the tree", header.tree, MAX_TREE),
    ):
        if size > most:
            raise ProblemTooLargeError(
                f"this certificate is too large to be checked: {size} {what}, the limit is {most}"
            )
    return header


def refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The JSON object, unless two readers could take different values of one of its keys."""
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise MisfitError(f"an object has the key {repeated!r} twice")
    return found


class Cursor:
    """Hands out array after array of the compressed content: the header first, the rest at once."""

    def __init__(self, content: memoryview, max_bytes: int) -> None:
        self._packed: bytes | memoryview = content
        self._left = self._most = max_bytes
        self._unpacker = zlib.decompressobj()
        self._rest = memoryview(b"")

    def take(self, dtype: Any, count: int, what: str) -> NDArray[Any]:
        """The next ``count`` numbers."""
        size = count * np.dtype(dtype).itemsize
        if size > self._left:
            raise MisfitError(f"{what}: the content unfolds to more than {self._most} bytes")
        self._left -= size
        content = self._rest[:size] if self._rest else memoryview(self._unfold(size))
        self._rest = self._rest[size:]
        if size < 0 or len(content) != size:
            raise MisfitError(f"{what} should have {count} entries, but the content ends before")
        return np.frombuffer(content, dtype, count)

    def _unfold(self, size: int) -> bytes:
        """At most so many bytes of what is still folded."""
        if size <= 0:
            return b""
        try:
            piece = self._unpacker.decompress(self._packed, size)
        except zlib.error as error:
            raise MisfitError(f"the compressed content is broken: {error}") from None
        self._packed = self._unpacker.unconsumed_tail
        return piece

    def unfold_rest(self) -> None:
        """Unfold all arrays."""
        self._rest = memoryview(self._unfold(self._left + 1))
        if not self._unpacker.eof and len(self._rest) <= self._left:
            raise MisfitError("the compressed content does not end where the file ends")

    def finish(self) -> None:
        """Nothing may be left over."""
        if self._rest:
            raise MisfitError("more bytes follow the last array")
        if self._unpacker.unused_data:
            raise MisfitError("the compressed content does not end where the file ends")


def _build(header: _Header, cursor: Cursor) -> Certificate:
    data, (rule, listed, loss) = _data(header, cursor), msgspec.structs.astuple(header.candidates)
    tree = cursor.take("<i4", header.tree, "tree")
    groups = None
    if header.groups:
        groups = cursor.take("<i4", header.n_samples, "groups").astype(np.int32)
        if (groups < 0).any() or (groups >= header.groups).any():
            raise MisfitError("groups: must lie between 0 and the number of groups minus one")
    score = Score(**msgspec.structs.asdict(header.score))
    shape = header.groups or header.n_samples, score.n_rivals(data.arities[0])
    return Certificate(
        fingerprint=header.fingerprint,
        data=data,
        score=score,
        candidates=Candidates(
            None if rule is None else CandidateRule(**msgspec.structs.asdict(rule)), listed, loss
        ),
        incumbent=header.incumbent,
        objective=header.objective,
        bound=header.bound,
        grid=header.grid,
        tree=tree,
        duals=_duals(header.duals, shape, cursor),
        rows=tuple(NamedRow(*row) for row in header.rows),
        multipliers=_multipliers(header.multipliers, cursor),
        groups=groups,
        n_groups=header.groups,
    )


def _data(header: _Header, cursor: Cursor) -> Data:
    names, states = zip(*header.variables, strict=True)
    n_samples = header.n_samples
    codes = cursor.take("<i4", n_samples * len(names), "codes").reshape(len(names), n_samples).T
    weights = cursor.take("<f8", n_samples, "weights")
    arities = np.array([len(s) for s in states])
    is_given, scores = header.score.name == "given", header.scores
    if is_given == (n_samples > 0) or (codes < 0).any() or (codes >= arities).any():
        raise MisfitError("codes: must lie between 0 and the number of states minus one")
    if len(scores) != (len(names) if is_given else 0):
        raise MisfitError("scores: must be there for every variable if they are given, else absent")
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise MisfitError("weights: must be positive and finite")
    return Data(names, states, codes.astype(np.int32), weights.astype(np.float64), scores)


def _duals(
    items: tuple[tuple[int, int], ...], shape: tuple[int, int], cursor: Cursor
) -> tuple[DualWeights, ...]:
    found: list[DualWeights] = []
    for number, (bits, before) in enumerate(items):
        place = f"header.duals[{number}]"
        if not 1 <= bits <= LARGEST_BITS or not -1 <= before < number:
            raise MisfitError(f"{place}: bits or reference out of range")
        kind = part_type(bits)
        parts = cursor.take(kind, shape[0] * shape[1], place).reshape(shape)
        if before >= 0:
            if found[before].parts.dtype != kind:
                raise MisfitError(f"{place}: refers to weights of another width")
            parts = parts + found[before].parts
        found.append(DualWeights(bits, parts))
    return tuple(found)


def _multipliers(count: int, cursor: Cursor) -> tuple[Multipliers, ...]:
    lengths = cursor.take("<i4", count, "multipliers").astype(np.int64)
    if (lengths < 0).any():
        raise MisfitError("multipliers: lengths must not be negative")
    ends = np.concatenate([[0], np.cumsum(lengths)])
    if ends[-1] > MAX_MULTIPLIERS:
        raise ProblemTooLargeError(f"multipliers name {ends[-1]} rows, {MAX_MULTIPLIERS} at most")
    rows = cursor.take("<i4", int(ends[-1]), "rows of the multipliers").tolist()
    values = cursor.take("<f8", int(ends[-1]), "values of the multipliers").tolist()
    return tuple(
        Multipliers(tuple(rows[a:b]), tuple(values[a:b])) for a, b in pairwise(ends.tolist())
    )
