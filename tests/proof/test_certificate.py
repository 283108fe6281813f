"""The certificate file: what is written is read, everything else is refused."""

from __future__ import annotations

import hashlib
import tracemalloc
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from certificates import certified, folded, unfolded, with_header
from marginbn.exceptions import FormatError, InputError, ProblemTooLargeError
from marginbn.files import MisfitError
from marginbn.problem.candidates import CandidateRule
from marginbn.proof import certificate as files
from marginbn.proof.certificate import (
    ARC,
    CANDIDATE,
    CLUSTERS,
    EDGE,
    FOREST,
    MAGIC,
    Candidates,
    Certificate,
    Data,
    DualWeights,
    NamedRow,
    Score,
    decode_certificate,
    encode_certificate,
    part_type,
    read_certificate,
    row_order,
    write_certificate,
)
from problems import small_linear_problem, small_margin_problem


def tiny_certificate(
    gamma: float = 2.0, share: int = 0, objective: float = 36.0, bound: float = 36.0 + 1e-9
) -> Certificate:
    """Nine rows of class a with x = 0 and nine of class b with x = 1.

    theta(x | class) is 10/11 or 1/11, so the arc from the class gives every row the log margin
    log 10; so does the arc to the class, and both exclude each other. With gamma = 2 every row is
    safe: the score is 18 * 2 = 36, and no structure can have more.
    """
    codes = np.array([[0, 0], [1, 1]], dtype=np.int32)
    data = Data(("class", "x"), (("a", "b"), ("0", "1")), codes, np.array([9.0, 9.0]))
    sets = (((), (1,)), ((), (0,)))
    parts = np.full((2, 1), share, dtype=np.uint8)
    return Certificate(
        fingerprint=data.fingerprint(),
        data=data,
        score=Score("multiclass", gamma),
        candidates=Candidates(None, sets),
        incumbent=((), (0,)),
        objective=objective,
        bound=bound,
        grid=-36,
        tree=np.array([FOREST, 0], dtype=np.int32),
        duals=(DualWeights(1, parts),),
    )


def same(one: Certificate, other: Certificate) -> bool:
    return encode_certificate(one) == encode_certificate(other)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written = tiny_certificate()
    write_certificate(tmp_path / "proof", written)
    read = read_certificate(tmp_path / "proof")
    assert read.data.names == ("class", "x")
    assert read.data.codes.tolist() == [[0, 0], [1, 1]]
    assert (read.objective, read.bound, read.grid) == (36.0, 36.0 + 1e-9, -36)
    assert read.tree.tolist() == [FOREST, 0]
    assert same(read, written)


@pytest.mark.parametrize("seed", range(3))
def test_real_certificates_round_trip(seed: int, tmp_path: Path) -> None:
    """Dual weights of several widths, clusters and listed candidates come back too."""
    for problem in (
        small_margin_problem(seed, n_features=4),
        small_margin_problem(seed, n_features=3, max_parents=3),
        small_linear_problem(seed, max_parents=3),
    ):
        read = certified(problem, tmp_path)
        assert same(read, decode_certificate(encode_certificate(read)))


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "proof"
    write_certificate(path, tiny_certificate())
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(InputError, match="No space left"):
        write_certificate(path, tiny_certificate(bound=40.0))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_too_much_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 100)
    with pytest.raises(ProblemTooLargeError, match="raise gap_tolerance or lower time_limit"):
        encode_certificate(tiny_certificate())


def test_a_bomb_is_not_unfolded() -> None:
    """Kilobytes that unfold to more than the limit, or than the header says, are left folded."""
    length = (20_000_000).to_bytes(8, "little")
    bomb = MAGIC + zlib.compress(length + bytes(20_000_000))
    header, arrays = unfolded(tiny_certificate())
    behind = folded(header, arrays + bytes(20_000_000))
    with_header(tiny_certificate())  # whatever is imported on the way
    for content, reason in (
        (bomb, "the header would be longer than 1000000 bytes"),
        (behind, "the content unfolds to more than 1000000 bytes"),
        (with_header(tiny_certificate(), tree=10**6), "tree should have 1000000 entries, but"),
    ):
        tracemalloc.start()
        with pytest.raises(MisfitError, match=reason):
            decode_certificate(content, 1_000_000)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 3_000_000


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"n_samples": 2 * 10**7}, "samples times variables and classes"),
        ({"tree": 10**7}, "entries of the tree"),
    ],
)
def test_what_is_too_large_is_refused_by_the_header(header: dict[str, int], reason: str) -> None:
    """Before any array is read, however the arrays may be."""
    with pytest.raises(ProblemTooLargeError, match=reason):
        decode_certificate(with_header(tiny_certificate(), **header))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no certificate"),
        (b"marginbn certificate 2\n", "no certificate"),
        (MAGIC, "the content ends before the header does"),
        (MAGIC + b"nonsense", "broken"),
        (MAGIC + zlib.compress(b""), "the content ends before the header does"),
        (MAGIC + zlib.compress((2**62).to_bytes(8, "little")), "the header"),
        (MAGIC + zlib.compress(bytes([255] * 8) + b"{}"), "the header would be longer"),
        (
            MAGIC + zlib.compress((2).to_bytes(8, "little") + b"[]"),
            "Expected `object`, got `array`",
        ),
        (
            MAGIC + zlib.compress((1).to_bytes(8, "little") + b"{"),
            "header: Input data was truncated",
        ),
        (encode_certificate(tiny_certificate()) + b"x", "does not end where the file ends"),
    ],
)
def test_broken_files_are_told(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "proof"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=reason) as error:
        read_certificate(path)
    assert str(path) in str(error.value)


def test_deep_nesting_is_refused() -> None:
    text = b'{"variables": ' + b"[" * 100_000
    with pytest.raises(MisfitError, match=r"header\.variables"):
        decode_certificate(MAGIC + zlib.compress(len(text).to_bytes(8, "little") + text))


def test_an_absent_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_certificate(tmp_path / "nothing")


def test_truncation_at_every_byte_is_refused() -> None:
    whole = encode_certificate(tiny_certificate())
    for length in range(len(whole)):
        with pytest.raises(MisfitError):
            decode_certificate(whole[:length])


# ---------------------------------------------------------------------------------- forged files


NUMBERS = {"gamma": 1.0, "smoothing": 1.0, "equivalent_sample_size": 1.0}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"variables": []}, r"header\.variables: Expected `array` of length >= 1"),
        ({"variables": [["class", ["a", "b"]]]}, "codes|bytes follow"),
        ({"n_samples": 0}, "codes: must lie|bytes follow"),
        ({"n_samples": 3}, "ends before|codes"),
        ({"tree": 1}, "bytes follow the last array"),
        ({"tree": 3}, "ends before|entries"),
        ({"tree": -1}, "tree"),
        ({"duals": []}, "more bytes follow the last array"),
        ({"duals": [0]}, ">= 1"),
        ({"duals": [25]}, "<= 24"),
        ({"duals": [[1, -1]]}, r"duals\[0\]: Expected `int`"),
        ({"rows": [["circle", [0, 1]]]}, r"header\.rows\[0\]\[0\]: Invalid enum value 'circle'"),
        ({"rows": [["edge"]]}, "rows"),
        ({"objective": "36"}, r"header\.objective: Expected `float`, got `str`"),
        ({"objective": float("nan")}, "header: JSON is malformed: invalid character"),
        ({"grid": 10**500}, r"header\.grid: Expected `int` <= 9223372036854775807"),
        ({"score": {"name": "bic"}}, "an object must have the keys name, gamma, smoothing, equ"),
        ({"score": {"name": "mdl", **NUMBERS, "more": 1}}, "an object must have the keys"),
        ({"candidates": {"rule": {}, "listed": [], "loss": 0.0}}, "missing required field"),
        ({"incumbent": [[], [-1]]}, r"header\.incumbent\[1\]\[0\]: Expected `int` >= 0"),
        ({"multipliers": 1}, "ends before"),
    ],
)
def test_forged_headers_are_refused(changes: dict[str, object], reason: str) -> None:
    """Lengths that do not fit the arrays, numbers out of range, kinds that do not exist."""
    with pytest.raises(MisfitError, match=reason):
        decode_certificate(with_header(tiny_certificate(), **changes))


def test_a_header_with_a_key_twice_is_refused() -> None:
    """Two readers could take different ones of the two."""
    header, arrays = unfolded(tiny_certificate())
    twice = header.replace(b'"bound": ', b'"bound": 40.0, "bound": ')
    with pytest.raises(MisfitError, match="an object has the key 'bound' twice"):
        decode_certificate(folded(twice, arrays))


def test_a_header_that_is_not_forged_is_read() -> None:
    """The forger's tool changes nothing by itself, and the ends of the ranges are fine."""
    certificate = tiny_certificate()
    assert same(decode_certificate(with_header(certificate)), certificate)
    for bits in (1, 7, 8, 15, 16, 24):
        parts = np.full((2, 1), 2**bits, dtype=np.uint32)
        wide = replace(certificate, duals=(DualWeights(bits, parts),) * 2)
        read = decode_certificate(encode_certificate(wide))
        assert [dual.bits for dual in read.duals] == [bits, bits]
        assert all((dual.parts == 2**bits).all() for dual in read.duals)


def test_dual_weights_have_their_own_width() -> None:
    """One byte and two next to each other."""
    small = DualWeights(1, np.ones((2, 1), dtype=np.uint8))
    large = DualWeights(9, np.full((2, 1), 300, dtype=np.uint16))
    certificate = replace(tiny_certificate(), duals=(small, large, small, large))
    assert same(decode_certificate(encode_certificate(certificate)), certificate)
    assert same(decode_certificate(with_header(certificate, duals=[1, 9, 1, 9])), certificate)


@pytest.mark.parametrize(
    ("codes", "weights", "reason"),
    [
        ([[0, 0], [1, 2]], [9.0, 9.0], "codes"),
        ([[2, 0], [1, 1]], [9.0, 9.0], "codes"),
        ([[0, -1], [1, 1]], [9.0, 9.0], "codes"),
        ([[0, 0], [1, 1]], [9.0, 0.0], "weights"),
        ([[0, 0], [1, 1]], [-9.0, 9.0], "weights"),
        ([[0, 0], [1, 1]], [9.0, np.inf], "weights"),
        ([[0, 0], [1, 1]], [np.nan, 9.0], "weights"),
    ],
)
def test_impossible_data_are_refused(
    codes: list[list[int]], weights: list[float], reason: str
) -> None:
    data = replace(
        tiny_certificate().data, codes=np.array(codes, dtype=np.int32), weights=np.array(weights)
    )
    with pytest.raises(MisfitError, match=reason):
        decode_certificate(encode_certificate(replace(tiny_certificate(), data=data)))


def test_lengths_of_multipliers_are_not_negative() -> None:
    certificate = replace(tiny_certificate(), multipliers=(((0, 1.0), (1, 2.0)),) * 2)
    assert decode_certificate(encode_certificate(certificate)).multipliers[1] == (
        (0, 1.0),
        (1, 2.0),
    )
    header, arrays = unfolded(certificate)
    lengths, others = (np.array(pair, dtype="<i4").tobytes() for pair in ([2, 2], [5, -1]))
    place = arrays.rindex(lengths)
    changed = arrays[:place] + others + arrays[place + len(lengths) :]
    with pytest.raises(MisfitError, match="must not be negative"):
        decode_certificate(folded(header, changed))


def test_rules_lists_and_rows_come_back() -> None:
    rule = CandidateRule(2, True, required=((0, 1),), forbidden=((1, 0),), constant=(1,))
    certificate = replace(
        tiny_certificate(),
        score=Score("bdeu", 1.5, 0.25, 7.5),
        candidates=Candidates(rule, (((), (1,)), ((),)), 0.125),
        rows=(NamedRow("cluster", (0, 1)), NamedRow("edge", (0, 1))),
        multipliers=((), ((1, 0.5), (0, 1e-300))),
        duals=(),
    )
    read = decode_certificate(encode_certificate(certificate))
    assert read.score == certificate.score
    assert read.candidates.rule == rule
    assert read.candidates.listed == (((), (1,)), ((),))
    assert read.candidates.loss == 0.125
    assert (read.rows, read.multipliers) == (certificate.rows, certificate.multipliers)


def test_too_long_headers_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as the limit is fine, one byte more is not, neither to write nor to read."""
    content = encode_certificate(tiny_certificate())
    length = int.from_bytes(zlib.decompress(content[len(MAGIC) :])[:8], "little")
    monkeypatch.setattr(files, "MAX_HEADER", length)
    assert encode_certificate(decode_certificate(content)) == content
    monkeypatch.setattr(files, "MAX_HEADER", length - 1)
    with pytest.raises(MisfitError, match="the header would be longer"):
        decode_certificate(content)
    with pytest.raises(ProblemTooLargeError):
        encode_certificate(tiny_certificate())


def test_content_up_to_the_limit_is_read(tmp_path: Path) -> None:
    """Folded and unfolded content as large as the limit, and not a byte more."""
    content = encode_certificate(tiny_certificate())
    size = len(zlib.decompress(content[len(MAGIC) :]))
    assert same(decode_certificate(content, size), tiny_certificate())
    with pytest.raises(MisfitError, match="unfolds to more than"):
        decode_certificate(content, size - 1)
    (tmp_path / "proof").write_bytes(content)
    with pytest.raises(FormatError, match="the file is larger than"):
        read_certificate(tmp_path / "proof", len(content) - 1)
    with pytest.raises(FormatError, match="header would be longer than"):
        read_certificate(tmp_path / "proof", len(content))


@pytest.mark.parametrize("n_columns", [0, 1, 3, 40])
def test_rows_are_put_in_order(n_columns: int) -> None:
    """Like a sort by all columns, the first one first; also where numbers would overflow."""
    rng = np.random.default_rng(n_columns)
    codes = rng.integers(0, 5, (60, n_columns)).astype(np.int32)
    codes[20:40] = codes[:20]
    expected = np.lexsort(codes.T[::-1]) if n_columns else np.arange(60)
    np.testing.assert_array_equal(row_order(codes), expected)
    np.testing.assert_array_equal(row_order(codes[expected]), np.arange(60))
    assert len(row_order(codes[:0])) == 0


def test_the_fingerprint_is_that_of_the_rows_in_any_order() -> None:
    """Permuted rows have the same one; another weight, code, row, name or label has not."""
    rng = np.random.default_rng(0)
    codes, weights = rng.integers(0, 2, (12, 3)).astype(np.int32), rng.uniform(1, 2, 12)
    codes = np.unique(codes, axis=0)
    n = len(codes)
    data = Data(("c", "x", "y"), (("a", "b"),) * 3, codes, weights[:n])
    assert len(data.fingerprint()) == 64
    for _ in range(5):
        order = rng.permutation(n)
        permuted = replace(data, codes=codes[order], weights=weights[:n][order])
        assert permuted.fingerprint() == data.fingerprint()
    others = [
        replace(data, weights=weights[:n][::-1]),
        replace(data, codes=codes[:, ::-1]),
        replace(data, codes=codes[1:], weights=weights[1:n]),
        replace(data, names=("c", "y", "x")),
        replace(data, states=(("a", "b"), ("b", "a"), ("a", "b"))),
        replace(data, codes=codes[:0], weights=weights[:0]),
    ]
    assert len({other.fingerprint() for other in (data, *others)}) == 7


def test_files_that_exist_stay_readable() -> None:
    """Numbers of kinds, widths, defaults and the fingerprint are part of the format."""
    assert (EDGE, ARC, CANDIDATE, FOREST, CLUSTERS) == (0, 1, 2, 3, 4)
    assert [part_type(bits).itemsize for bits in (1, 7, 8, 15, 16, 24)] == [1, 1, 2, 2, 4, 4]
    assert Score("mdl") == Score("mdl", 1.0, 1.0, 1.0)
    codes = np.array([[1, 0], [0, 1], [0, 0]], dtype=np.int32)
    data = Data(("c", "x"), (("a", "b"),) * 2, codes, np.array([1.0, 2.0, 4.0]))
    digest = hashlib.sha256(b'[["c", "x"], [["a", "b"], ["a", "b"]], [3, 2]]')
    digest.update(np.array([[0, 0], [0, 1], [1, 0]], dtype="<i4").tobytes())  # class first
    digest.update(np.array([4.0, 2.0, 1.0], dtype="<f8").tobytes())
    assert data.fingerprint() == digest.hexdigest()


@pytest.mark.parametrize(("name", "rivals"), [("binary", 1), ("multiclass", 2), ("mdl", 0)])
def test_dual_weights_have_a_part_for_every_rival(name: str, rivals: int) -> None:
    """Three classes: two rivals, or the rest, or nobody where there are no margins."""
    data = replace(tiny_certificate().data, states=(("a", "b", "c"), ("0", "1")))
    parts = np.arange(2 * rivals, dtype=np.uint8).reshape(2, rivals)
    certificate = replace(
        tiny_certificate(), data=data, score=Score(name), duals=(DualWeights(3, parts),)
    )
    [dual] = decode_certificate(encode_certificate(certificate)).duals
    assert dual.parts.tolist() == parts.tolist()
    assert dual.parts.shape == (2, rivals)


def test_no_number_that_is_none_is_written() -> None:
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError, match="not JSON compliant"):
            encode_certificate(replace(tiny_certificate(), bound=wrong))


def test_one_row_is_enough_and_none_is_not() -> None:
    for n in (0, 1):
        data = replace(
            tiny_certificate().data, codes=np.zeros((n, 2), dtype=np.int32), weights=np.ones(n)
        )
        duals = (DualWeights(1, np.zeros((n, 1), dtype=np.uint8)),)
        content = encode_certificate(replace(tiny_certificate(), data=data, duals=duals))
        if n:
            assert decode_certificate(content).data.codes.tolist() == [[0, 0]]
        else:
            with pytest.raises(MisfitError, match="codes"):
                decode_certificate(content)
