"""The certificate file: what is written is read, everything else is refused."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

from certificates import certified, follows
from marginbn.certificate import file as files
from marginbn.certificate.content import FOREST, Candidates, Certificate, Data, DualWeights, Score
from marginbn.certificate.file import (
    MAGIC,
    decode_certificate,
    encode_certificate,
    read_certificate,
    write_certificate,
)
from marginbn.exceptions import FormatError, InputError, MarginBNError, ProblemTooLargeError
from marginbn.jsonvalues import MisfitError
from marginbn.verify import verify_certificate
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
        candidates=Candidates(None, sets, np.zeros(0, dtype=bool)),
        incumbent=((), (0,)),
        objective=objective,
        bound=bound,
        grid=-36,
        tree=np.array([FOREST, 0], dtype=np.int32),
        duals=(DualWeights(1, parts),),
    )


def same(one: Certificate, other: Certificate) -> bool:
    """All values and arrays equal."""
    return encode_certificate(one) == encode_certificate(other)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Every field of a small certificate comes back."""
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
    """Dual weights of several widths, clusters and dropped candidates come back too."""
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
    """All or nothing."""
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
    """A certificate above the limit is not written."""
    monkeypatch.setattr(files, "MAX_BYTES", 100)
    with pytest.raises(ProblemTooLargeError, match="raise gap_tolerance or lower time_limit"):
        encode_certificate(tiny_certificate())


def test_a_bomb_is_not_unfolded() -> None:
    """A kilobyte that unfolds to more than the limit is refused."""
    bomb = MAGIC + zlib.compress(bytes(10_000_000))
    with pytest.raises(MisfitError, match="unfolds to more than 1000000 bytes"):
        decode_certificate(bomb, 1_000_000)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no certificate"),
        (b"marginbn certificate 2\n", "no certificate"),
        (MAGIC, "does not end"),
        (MAGIC + b"nonsense", "broken"),
        (MAGIC + zlib.compress(b""), "length of the header"),
        (MAGIC + zlib.compress((2**62).to_bytes(8, "little")), "the header"),
        (MAGIC + zlib.compress((2).to_bytes(8, "little") + b"[]"), "must be an object"),
        (MAGIC + zlib.compress((1).to_bytes(8, "little") + b"["), "no JSON"),
        (encode_certificate(tiny_certificate()) + b"x", "does not end where the file ends"),
    ],
)
def test_broken_files_are_told(content: bytes, reason: str, tmp_path: Path) -> None:
    """The message has the path and the reason."""
    path = tmp_path / "proof"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=reason) as error:
        read_certificate(path)
    assert str(path) in str(error.value)


def test_deep_nesting_is_refused() -> None:
    """A header of brackets does not exhaust the stack."""
    text = b"[" * 100_000
    with pytest.raises(MisfitError, match="no JSON"):
        decode_certificate(MAGIC + zlib.compress(len(text).to_bytes(8, "little") + text))


def test_an_absent_file_is_an_input_error(tmp_path: Path) -> None:
    """Not a traceback."""
    with pytest.raises(InputError, match="cannot read"):
        read_certificate(tmp_path / "nothing")


def test_truncation_at_every_byte_is_refused() -> None:
    """No prefix of a file is a certificate."""
    whole = encode_certificate(tiny_certificate())
    for length in range(len(whole)):
        with pytest.raises(MisfitError):
            decode_certificate(whole[:length])


def spoiled_content(content: bytes, rng: np.random.Generator) -> bytes:
    """One byte of the unfolded content changed."""
    unfolded = bytearray(zlib.decompress(content[len(MAGIC) :]))
    unfolded[int(rng.integers(len(unfolded)))] = int(rng.integers(256))
    return MAGIC + zlib.compress(bytes(unfolded))


def check_spoiled_contents(content: bytes, rng: np.random.Generator, count: int) -> None:
    for _ in range(count):
        try:
            certificate = decode_certificate(spoiled_content(content, rng))
        except MisfitError:
            continue
        if verify_certificate(certificate):
            assert follows(certificate) is not False


def test_changed_bytes_are_refused_or_harmless(tmp_path: Path) -> None:
    """Whatever byte changes, nothing crashes, and what is still verified is still true."""
    rng = np.random.default_rng(0)
    check_spoiled_contents(encode_certificate(tiny_certificate()), rng, 150)
    problem = small_margin_problem(1, n_features=2, n_rows=10, max_parents=3)
    check_spoiled_contents(encode_certificate(certified(problem, tmp_path)), rng, 50)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_many_changed_bytes_are_refused_or_harmless(seed: int, tmp_path: Path) -> None:
    """The same with thousands of bytes."""
    rng = np.random.default_rng(seed)
    for problem in (
        small_margin_problem(seed, n_features=3, n_rows=12),
        small_linear_problem(seed, n_features=3, n_rows=12, max_parents=3),
    ):
        check_spoiled_contents(encode_certificate(certified(problem, tmp_path)), rng, 300)


def test_every_error_is_ours() -> None:
    """Refusals can be caught as errors of the package."""
    assert issubclass(FormatError, MarginBNError)
