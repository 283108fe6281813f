"""CSV by pyarrow, polars and the csv module: the same tables and errors, whatever the file."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from marginbn.data import delimited, readers, splitting
from marginbn.data.delimited import TextTable, open_delimited
from marginbn.data.readers import open_chunks, read_table
from marginbn.data.splitting import SPLITTERS
from marginbn.data.text import TextArray
from marginbn.exceptions import FormatError, InputError, MarginBNError

pytest.importorskip("pyarrow")
pytest.importorskip("polars")

PLAIN = ["", " ", "?", "NA", " nan ", "NaN", "1", "2.0", "-0.5", "+3", ".5", "5.", "1e3", "1_0"]
TEXTS = ["a", " a", "b ", "ä", "\u00a01", "１", "x y", "true", "a\tb", "1d5", "--1", "01", "\0"]
QUOTED = [
    '"a"',
    '"a,b"',
    '"a\nb"',
    '"x""y"',
    '""',
    '"',
    'a"b',
    ' "a"',
    '"a" ',
    '"a"b',
    "a\rb",
    "\0",
]
NUMBERS = ["inf", "-Infinity", "1e400", "nan(1)", "12345678901234567890", "0.1", "5e-324"]
FIELDS = st.sampled_from([*PLAIN, *TEXTS, *QUOTED, *NUMBERS])
ROWS = st.lists(st.lists(FIELDS, min_size=2, max_size=2).map(",".join), max_size=6)
LINE_ENDS = st.sampled_from(["\n", "\r\n", "\n", "\n\n", "\r", "\n \n"])


def outcome(path: Path, **options: Any) -> Any:
    """What a reader makes of a file: kinds and values, or the error."""
    try:
        table = read_table(path, **options)
    except MarginBNError as error:
        return type(error).__name__, str(error)
    return [
        (c.name, c.kind, c.categories, [str(v) for v in c.values.tolist()]) for c in table.columns
    ]


def use(patch: pytest.MonkeyPatch, package: str | None) -> None:
    """Have no quick reader but that of one package."""
    known = splitting.find_spec
    patch.setattr(splitting, "find_spec", lambda name: known(name) if name == package else None)


def all_outcomes(path: Path, **options: Any) -> list[Any]:
    """By each package as far as it goes, in blocks of a few rows; last by the csv module."""
    found = []
    for package in ("pyarrow", "polars"):
        with pytest.MonkeyPatch.context() as patch:
            use(patch, package)
            patch.setattr(readers, "QUICK_BYTES", 0)
            patch.setattr(delimited, "BLOCK_BYTES", 16)
            found.append(outcome(path, **options))
    with pytest.MonkeyPatch.context() as patch:
        use(patch, None)
        return [*found, outcome(path, **options)]


@settings(max_examples=300, deadline=None)
@given(ROWS, LINE_ENDS, st.sampled_from([None, "numeric", "categorical"]), st.booleans())
@example(["1,2", "3,4"], "\n", None, True)
@example(['"a\nb",1', "c,2"], "\n", None, False)
@example(["1.5,1", "inf,2"], "\n", "numeric", False)
def test_both_readers_agree(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[str],
    end: str,
    kind: str | None,
    is_ended: bool,
) -> None:
    """Kinds, values and errors, on files that nobody should write."""
    path = tmp_path_factory.getbasetemp() / "nasty.csv"
    text = end.join(["u,v", *rows]) + (end if is_ended else "")
    path.write_bytes(text.encode())
    by_arrow, by_polars, slow = all_outcomes(path, kinds=kind or "auto")
    assert by_arrow == slow
    assert by_polars == slow


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=40))
@example(b"u,v\n1,\xff\n")
@example(b"\xef\xbb\xbfu,v\n1,2\n")
@example(b"u;v\n1;2\n")
def test_both_readers_agree_on_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Whatever the bytes below a header are, and without one."""
    path = tmp_path_factory.getbasetemp() / "bytes.csv"
    for content in (data, b"u,v\n" + data):
        path.write_bytes(content)
        by_arrow, by_polars, slow = all_outcomes(path)
        assert by_arrow == slow
        assert by_polars == slow


def blocks_of(data: bytes, **options: Any) -> list[TextTable]:
    """The blocks of a stream."""
    return list(open_delimited(io.BytesIO(data), "stream", **options).tables())


def rows_of(tables: list[TextTable]) -> list[tuple[Any, ...]]:
    """All rows of some blocks."""
    return [row for table in tables for row in zip(*table.columns, strict=True)]


@pytest.mark.parametrize("package", ["pyarrow", "polars"])
def test_plain_blocks_are_split_quickly_and_others_are_not(
    package: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One strange quote makes the csv module read from there on, and only from there on."""
    use(monkeypatch, package)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 64)
    plain = b"".join(b'%d,"a ""%d"", b"\n' % (i, i) for i in range(50))
    tables = blocks_of(b"u,v\n" + plain)
    assert all(isinstance(table.columns[0], TextArray) for table in tables)
    assert len(tables) > 10
    assert rows_of(tables) == [(str(i), f'a "{i}", b') for i in range(50)]
    mixed = blocks_of(b"u,v\n" + plain + b'50,5" pipe\n' + plain)
    assert isinstance(mixed[0].columns[0], TextArray)
    assert not isinstance(mixed[-1].columns[0], TextArray)
    assert rows_of(mixed)[50] == ("50", '5" pipe')
    assert len(rows_of(mixed)) == 101


def test_lines_are_counted_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows by either reader, and below fields with line ends in them."""
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 64)
    data = b"u,v\n" + b'1,"x\ny"\n' * 30 + b"2,z\n"
    tables = blocks_of(data)
    lines = [table.origin.lines[i] for table in tables for i in range(table.n_rows)]
    assert lines == [2 * i + 2 for i in range(31)]
    with pytest.raises(FormatError, match="stream, line 63: expected 2 fields, got 1"):
        blocks_of(data + b"3\n")


def test_only_wanted_columns_are_read() -> None:
    """In the order of the file."""
    blocks = open_delimited(io.BytesIO(b"u,v,w\n1,2,3\n"), "stream")
    (table,) = blocks.tables({"w", "u", "nowhere"})
    assert table.names == ("u", "w")
    assert rows_of([table]) == [("1", "3")]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252", "utf-8"])
def test_encodings(encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both readers and the chunks know them."""
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 7)
    path = tmp_path / "table.csv"
    path.write_bytes("größe,v\nmüde,1\nfroh,2\n".encode(encoding))
    by_arrow, by_polars, slow = all_outcomes(path, encoding=encoding)
    assert by_arrow == by_polars == slow
    assert slow[0][:3] == ("größe", "categorical", ("froh", "müde"))
    with open_chunks(path, encoding=encoding) as chunks:
        assert rows_of(list(chunks.read(chunks.names))) == [("müde", "1"), ("froh", "2")]


def test_a_wrong_encoding_names_the_line_and_the_remedy(tmp_path: Path) -> None:
    """Also in chunks."""
    path = tmp_path / "table.csv"
    path.write_bytes(b"u,v\nfroh,1\nm\xfcde,2\n")
    with pytest.raises(FormatError, match=r"line 3: byte 0xfc is not UTF-8; .* say its encoding"):
        read_table(path)
    with (
        open_chunks(path) as chunks,
        pytest.raises(FormatError, match="line 3: byte 0xfc is not UTF-8"),
    ):
        list(chunks.read(chunks.names))
    with pytest.raises(InputError, match="encoding must be one that Python knows"):
        read_table(path, encoding="klingon")


def test_packed_files_and_empty_ones(tmp_path: Path) -> None:
    """gzip is unpacked on the way; nothing below the header is an error."""
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"u,v\n1,2\n"))
    with open_chunks(path) as chunks:
        assert rows_of(list(chunks.read(chunks.names))) == [("1", "2")]
    path.write_bytes(gzip.compress(b"u,v\n1,2\n" * 1000)[:-20])
    with pytest.raises(FormatError, match="cannot be read to its end"), open_chunks(path) as chunks:
        list(chunks.read(chunks.names))
    for data in (b"", b"  \n "):
        with pytest.raises(FormatError, match="the file is empty"):
            blocks_of(data)
    with pytest.raises(FormatError, match="no rows below the header"):
        blocks_of(b"u,v\n\n")


def test_without_either_the_csv_module_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """In batches, with the same rows."""
    data = b"u,v\n" + b"".join(b"%d,x\n" % i for i in range(25))
    expected = rows_of(blocks_of(data))
    use(monkeypatch, None)
    monkeypatch.setattr(delimited, "BATCH_ROWS", 10)
    tables = blocks_of(data)
    assert [table.n_rows for table in tables] == [10, 10, 5]
    assert rows_of(tables) == expected


@pytest.mark.parametrize("package", ["pyarrow", "polars"])
def test_numbers_are_those_of_python(package: str) -> None:
    """What a package reads as a number Python reads alike, to the last bit."""

    rng = np.random.default_rng(0)
    texts = [
        repr(float(x)) for x in rng.standard_normal(2000) * 10.0 ** rng.integers(-300, 300, 2000)
    ]
    texts += ["", "NA", "0.1", "1e22", "9007199254740993", "123456789012345678901234567890"]
    body = "".join(f"{text},\n" for text in texts).encode()
    split = SPLITTERS[package](body, 2, [0], ",")
    assert split is not None
    numbers = split[0][0].numbers()
    assert numbers is not None
    expected = [float(t) if t not in ("", "NA") else np.nan for t in texts]
    np.testing.assert_array_equal(numbers, expected)


def test_arrow_reads_a_copy_of_its_own() -> None:
    """Threads of arrow that outlive the interpreter must not hold memory of Python's."""
    body = b"a,b\nc,d\n" * 10
    before = sys.getrefcount(body)
    buffer = splitting._owned_by_arrow(body)
    assert buffer.to_pybytes() == body
    assert sys.getrefcount(body) == before
