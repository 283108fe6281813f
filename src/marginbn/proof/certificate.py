"""What a certificate says: a problem, a structure, two numbers and a tree that proves them.

``docs/theory/certificate_format.rst`` specifies the claim, the bytes, every key and array, and the
arithmetic. ``exact.py`` reads the file by that page alone, so what changes here changes there. An
inner node of the tree has one of the *objects*

    EDGE i j       i is a parent of j or j of i
    ARC i j        j is a parent of i
    CANDIDATE k    the child of candidate k has exactly these parents

and two children: the structures without it, then those with it. A leaf names what bounds its
structures: FOREST d or CLUSTERS d m, with dual weights number d and multipliers number m.

Reading builds plain values only. The header is unfolded first and may be refused; every length is
checked before memory is taken.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple

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
from marginbn.problem.candidates import CandidateRule

EDGE, ARC, CANDIDATE, FOREST, CLUSTERS = 0, 1, 2, 3, 4
"""Kinds of nodes in the stream."""

ARGUMENTS = {EDGE: 2, ARC: 2, CANDIDATE: 1, FOREST: 1, CLUSTERS: 2}

RowKind = Literal["cluster", "packing", "edge"]
"""Kinds of rows; ``checker.bounds.ROW_RULES`` says what each of them means."""


@dataclass(frozen=True)
class Score:
    """What is maximised: ``multiclass`` or ``binary`` margins, a decomposable score by name, or the
    sum of local scores that are ``given``.
    """

    name: str
    gamma: float = 1.0
    smoothing: float = 1.0
    equivalent_sample_size: float = 1.0

    def n_rivals(self, n_classes: int) -> int:
        """Parts that a sample has in dual weights."""
        return {"binary": 1, "multiclass": n_classes - 1}.get(self.name, 0)

    @property
    def is_margin(self) -> bool:
        """Whether there are margin rows."""
        return self.name in ("multiclass", "binary")


@dataclass(frozen=True, eq=False)
class Data:
    """Encoded data, class first, as in :class:`marginbn.problem.encoded.EncodedData`; or no rows,
    and for every variable the parent sets that have a score.
    """

    names: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]
    codes: NDArray[np.integer]
    weights: NDArray[np.float64]
    scores: tuple[tuple[tuple[tuple[int, ...], float], ...], ...] = ()

    @cached_property
    def arities(self) -> tuple[int, ...]:
        """Number of states of each variable."""
        return tuple(len(labels) for labels in self.states)

    def fingerprint(self) -> str:
        """SHA-256 of names, labels, rows in the order of their codes, weights and given scores."""
        order = row_order(self.codes)
        digest = hashlib.sha256()
        digest.update(json.dumps([self.names, self.states, self.codes.shape]).encode())
        for begin in range(0, len(order), PIECE):  # never a second table
            part = self.codes[order[begin : begin + PIECE]]
            digest.update(np.ascontiguousarray(part, dtype="<i4").tobytes())
        digest.update(np.ascontiguousarray(self.weights[order], dtype="<f8").tobytes())
        digest.update(json.dumps(self.scores).encode() if self.scores else b"")
        return digest.hexdigest()


PIECE = 65_536
"""Rows that are hashed at a time."""


def row_order(codes: NDArray[np.integer]) -> NDArray[np.int64]:
    """Rows in lexicographic order, equal ones as they stand. Rows that are in order already, as
    those of merged data are, are only compared with their neighbours.
    """
    differ = codes[1:] != codes[:-1]
    if not differ.size:
        return np.arange(len(codes))
    first = differ.argmax(axis=1)[:, None]
    steps = np.take_along_axis(codes[1:], first, 1) >= np.take_along_axis(codes[:-1], first, 1)
    return np.arange(len(codes)) if steps.all() else np.lexsort(codes.T[::-1])


@dataclass(frozen=True, eq=False)
class Candidates:
    """A rule, every child's parent sets, or a rule and the sets that no listed subset dominates."""

    rule: CandidateRule | None
    listed: tuple[tuple[tuple[int, ...], ...], ...] = ()
    loss: float = 0.0


@dataclass(frozen=True, eq=False)
class DualWeights:
    """``parts`` is unsigned, (n_samples, n_rivals), or (n_groups, n_rivals)."""

    bits: int
    parts: NDArray[np.unsignedinteger]


class NamedRow(NamedTuple):
    """A row that multipliers refer to, by its kind and its variables."""

    kind: RowKind
    members: tuple[int, ...]


Multipliers = tuple[tuple[int, float], ...]
"""Numbers of rows with their multipliers."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """``incumbent`` scores ``objective`` or more, no structure of the problem more than ``bound``;
    ``tree`` is one stream of kinds and arguments in preorder.
    """

    fingerprint: str
    data: Data
    score: Score
    candidates: Candidates
    incumbent: tuple[tuple[int, ...], ...]
    objective: float
    bound: float
    grid: int
    tree: NDArray[np.int32]
    duals: tuple[DualWeights, ...] = ()
    rows: tuple[NamedRow, ...] = ()
    multipliers: tuple[Multipliers, ...] = ()
    groups: NDArray[np.int32] | None = None
    n_groups: int = 0


# ------------------------------------------------------------------------------- the file

MAGIC = b"marginbn certificate 1\n"

LENGTH_BYTES = 8
"""Of the number before the header."""

MAX_BYTES = 2**30
"""Largest unfolded content that is read or written."""

MAX_HEADER = 2**25
"""Largest header: text unfolds to much larger values than arrays do."""

MAX_CELLS, MAX_TREE, MAX_MULTIPLIERS = 5 * 10**7, 2**22, 2 * 10**7
"""Largest number of samples times variables and classes (and of subsets of sets with scores), of
entries of the tree and of rows that multipliers name: more is refused before it is read.
"""

Indices = tuple[Count, ...]


class Header(Shape, frozen=True, omit_defaults=True):
    """The header; ``groups`` and ``scores`` are keys only where there are some."""

    fingerprint: str
    variables: Annotated[tuple[tuple[str, tuple[str, ...]], ...], msgspec.Meta(min_length=1)]
    n_samples: Count
    score: Score
    candidates: Candidates
    incumbent: tuple[Indices, ...]
    objective: float
    bound: float
    grid: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    tree: Count
    duals: tuple[Annotated[int, msgspec.Meta(ge=1, le=24)], ...]
    rows: tuple[NamedRow, ...]
    multipliers: Count
    groups: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] = 0
    scores: tuple[tuple[tuple[Indices, float], ...], ...] = ()

    @classmethod
    def of(cls, c: Certificate) -> Header:
        """The header of a certificate."""
        return cls(
            variables=tuple(zip(c.data.names, c.data.states, strict=True)),
            n_samples=len(c.data.codes),
            tree=len(c.tree),
            duals=tuple(dual.bits for dual in c.duals),
            multipliers=len(c.multipliers),
            groups=c.n_groups,
            scores=c.data.scores,
            **{name: getattr(c, name) for name in AS_THEY_ARE},
        )


AS_THEY_ARE = (
    "fingerprint", "score", "candidates", "incumbent", "objective", "bound", "grid", "rows",
)  # fmt: skip
"""Entries of the header that are fields of the certificate."""


def part_type(bits: int) -> np.dtype[Any]:
    """Type of the parts of dual weights with so many bits: 2^bits itself must fit."""
    return np.dtype("<u1" if bits < 8 else "<u2" if bits < 16 else "<u4")


def write_certificate(path: PathLike, certificate: Certificate) -> None:
    """Write a certificate, all or nothing."""
    write_atomic(path, encode_certificate(certificate))


def encode_certificate(certificate: Certificate) -> bytes:
    """The bytes of the file."""
    plain = msgspec.to_builtins(Header.of(certificate))
    header = json.dumps(plain, allow_nan=False).encode()
    parts = [len(header).to_bytes(LENGTH_BYTES, "little"), header, *_arrays(certificate)]
    size = sum(len(part) for part in parts)
    if size > MAX_BYTES or len(header) > MAX_HEADER:
        raise ProblemTooLargeError(
            f"the certificate would hold {size / 1e6:.0f} MB, more than {MAX_BYTES / 1e6:.0f} MB; "
            "raise gap_tolerance or lower time_limit, so that the tree stays smaller"
        )
    packer = zlib.compressobj(6)
    return MAGIC + b"".join(packer.compress(part) for part in parts) + packer.flush()


def _arrays(c: Certificate) -> Iterator[bytes]:
    yield np.ascontiguousarray(c.data.codes.T, dtype="<i4").tobytes()
    yield np.ascontiguousarray(c.data.weights, dtype="<f8").tobytes()
    yield np.ascontiguousarray(c.tree, dtype="<i4").tobytes()
    if c.groups is not None:
        yield np.ascontiguousarray(c.groups, dtype="<i4").tobytes()
    for dual in c.duals:
        yield dual.parts.astype(part_type(dual.bits)).tobytes()
    yield np.array([len(own) for own in c.multipliers], dtype="<i4").tobytes()
    yield np.array([row for own in c.multipliers for row, _ in own], dtype="<i4").tobytes()
    yield np.array([y for own in c.multipliers for _, y in own], dtype="<f8").tobytes()


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
    unpacker = zlib.decompressobj()
    begin = _unfold(unpacker, memoryview(content)[len(MAGIC) :], LENGTH_BYTES)
    length = int.from_bytes(begin, "little")
    if length > min(MAX_HEADER, max_bytes):
        raise MisfitError(f"the header would be longer than {min(MAX_HEADER, max_bytes)} bytes")
    text = _unfold(unpacker, unpacker.unconsumed_tail, length)
    if len(text) < length or not text:
        raise MisfitError("the content ends before the header does")
    header, most = _read_header(text), max_bytes - LENGTH_BYTES - length
    arrays = _unfold(unpacker, unpacker.unconsumed_tail, most + 1)
    if len(arrays) > most:
        raise MisfitError(f"the content unfolds to more than {max_bytes} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise MisfitError("the compressed content does not end where the file ends")
    return _build(header, memoryview(arrays))


def _unfold(unpacker: Any, packed: bytes | memoryview, size: int) -> bytes:
    """At most so many bytes."""
    try:
        return bytes(unpacker.decompress(packed, size)) if size > 0 else b""
    except zlib.error as error:
        raise MisfitError(f"the compressed content is broken: {error}") from None


def _read_header(text: bytes) -> Header:
    """The header, unless what follows would take too much memory or time."""
    header = decode(text, Header, "header")
    found = json.loads(text, object_pairs_hook=refuse_repeated_keys)  # the last one would count
    own = header.candidates
    records = found["score"], found["candidates"], found["candidates"]["rule"]
    for record, value in zip(records, (header.score, own, own.rule), strict=True):
        keys = [] if value is None else [field.name for field in fields(value)]
        if sorted(record or ()) != sorted(keys):
            raise MisfitError(f"header: an object must have the keys {', '.join(keys)}")
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
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            raise MisfitError(f"an object has the key {key!r} twice")
    return dict(pairs)


Take = Callable[[Any, int, str], NDArray[Any]]
"""Gives the next numbers of a type, so many of them; their name is for the message."""


def _build(header: Header, arrays: memoryview) -> Certificate:
    place = 0

    def take(dtype: Any, count: int, what: str) -> NDArray[Any]:
        nonlocal place
        begin, place = place, place + count * np.dtype(dtype).itemsize
        if place > len(arrays):
            raise MisfitError(f"{what} should have {count} entries, but the content ends before")
        return np.frombuffer(arrays[begin:place], dtype)

    data = _data(header, take)
    tree = take("<i4", header.tree, "tree")
    groups = None
    if header.groups:
        groups = take("<i4", header.n_samples, "groups").astype(np.int32)
        if (groups < 0).any() or (groups >= header.groups).any():
            raise MisfitError("groups: must lie between 0 and the number of groups minus one")
    shape = header.groups or header.n_samples, header.score.n_rivals(data.arities[0])
    parts = [take(part_type(bits), shape[0] * shape[1], "dual weights") for bits in header.duals]
    multipliers = _multipliers(header.multipliers, take)
    if place < len(arrays):
        raise MisfitError("more bytes follow the last array")
    return Certificate(
        data=data,
        tree=tree,
        duals=tuple(map(DualWeights, header.duals, (own.reshape(shape) for own in parts))),
        multipliers=multipliers,
        groups=groups,
        n_groups=header.groups,
        **{name: getattr(header, name) for name in AS_THEY_ARE},
    )


def _data(header: Header, take: Take) -> Data:
    names, states = zip(*header.variables, strict=True)
    n_samples = header.n_samples
    codes = take("<i4", n_samples * len(names), "codes").reshape(len(names), n_samples).T
    weights = take("<f8", n_samples, "weights")
    arities = np.array([len(s) for s in states])
    is_given, scores = header.score.name == "given", header.scores
    if is_given == (n_samples > 0) or (codes < 0).any() or (codes >= arities).any():
        raise MisfitError("codes: must lie between 0 and the number of states minus one")
    if len(scores) != (len(names) if is_given else 0):
        raise MisfitError("scores: must be there for every variable if they are given, else absent")
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise MisfitError("weights: must be positive and finite")
    return Data(names, states, codes.astype(np.int32), weights.astype(np.float64), scores)


def _multipliers(count: int, take: Take) -> tuple[Multipliers, ...]:
    lengths = take("<i4", count, "multipliers").astype(np.int64)
    if (lengths < 0).any():
        raise MisfitError("multipliers: lengths must not be negative")
    ends = np.concatenate([[0], np.cumsum(lengths)])
    if ends[-1] > MAX_MULTIPLIERS:
        raise ProblemTooLargeError(f"multipliers name {ends[-1]} rows, {MAX_MULTIPLIERS} at most")
    rows = take("<i4", int(ends[-1]), "rows of the multipliers").tolist()
    values = take("<f8", int(ends[-1]), "values of the multipliers").tolist()
    entries = list(zip(rows, values, strict=True))
    return tuple(tuple(entries[a:b]) for a, b in pairwise(ends.tolist()))
