"""Reading files: by hand, with hostile input, by round trip, against pandas and scipy."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import arff as scipy_arff

from marginbn.data.table import open_file, read_table
from marginbn.exceptions import FormatError, InputError
from tables import write_rows


def written(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


# --- CSV by hand ----------------------------------------------------------------------------------


def test_csv_by_hand(tmp_path: Path) -> None:
    text = "code, size ,word,flag\n1,0.5, a b ,True\n2,,NA,?\n1,1e3,b,False\n\n"
    table = read_table(written(tmp_path, text))
    assert table.names == ("code", "size", "word", "flag")
    assert table.column("code").categories == (1, 2)
    np.testing.assert_array_equal(table.column("size").values, [0.5, np.nan, 1000.0])
    assert table.column("word").values.tolist() == ["a b", None, "b"]
    assert table.column("flag").values.tolist() == ["True", None, "False"]


def test_only_documented_texts_are_missing(tmp_path: Path) -> None:
    missing = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", '""', " ? ")
    text = "a,b\n" + "".join(f"{t},1\n" for t in missing)
    values = ("null", "None", "NAN", "-")
    table = read_table(written(tmp_path, text + "".join(f"{t},1\n" for t in values)))
    assert table.column("a").values.tolist() == [None] * 9 + list(values)


@pytest.mark.parametrize(
    ("fields", "categories"),
    [
        (["1", "2", "1"], (1, 2)),
        (["1.0", "1", "2"], (1, 2)),
        (["01", "1", "2"], ("01", "1", "2")),
        (["1", "x", "01"], ("01", "1", "x")),
        (["-1", "0", "10"], (-1, 0, 10)),
        (["1_000", "2", "3"], ("1_000", "2", "3")),
        (["9" * 30, "1", "2"], ("1", "2", "9" * 30)),
    ],
)
def test_labels_read_as_written(
    tmp_path: Path, fields: list[str], categories: tuple[object, ...]
) -> None:
    table = read_table(written(tmp_path, "a\n" + "\n".join(fields)), kinds="categorical")
    assert table.column("a").categories == categories


def test_kinds_can_be_forced(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,0.5\n2,1.5\n")
    table = read_table(path, kinds={"a": "numeric", "b": "categorical"})
    assert table.column("a").values.tolist() == [1.0, 2.0]
    assert table.column("b").categories == ("0.5", "1.5")
    with pytest.raises(InputError, match="'c'"):
        read_table(path, kinds={"c": "numeric"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "a,b\n1,x y\n"),
        ("t.CSV", "a,b\r\n1,x y\r\n"),
        ("t.csv", "\ufeffa,b\n1,x y"),
        ("t.csv.gz", '"a","b"\n"1","x y"\n'),
        ("t.csv", "a;b\n1;x y\n"),
        ("t.csv", '"a";"b"\n1;"x y"\n'),
        ("t.tsv", "a\tb\n1\tx y\n"),
        ("t.txt", "a\tb\n1\tx y\n"),
        ("t.txt.gz", "a,b\n1,x y\n"),
        ("t.v1.csv", "\n\na|b\n   \n1|x y\n"),
        ("t.csv", "a, b\n1, x y \n\n\n"),
        ("t.csv", "a,b\r1,x y\r"),
    ],
)
def test_same_table_in_many_guises(tmp_path: Path, name: str, text: str) -> None:
    table = read_table(written(tmp_path, text, name))
    assert [column.values.tolist() for column in table.columns] == [[1], ["x y"]]
    assert table.names == ("a", "b")


def test_delimiter_can_be_given(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b:c\n1,2:3\n")
    assert read_table(path, delimiter=":").names == ("a,b", "c")
    with pytest.raises(InputError, match="single character"):
        read_table(path, delimiter="::")


@pytest.mark.parametrize("name", ["t.csv", "t.txt"])
def test_a_space_is_any_number_of_spaces(tmp_path: Path, name: str) -> None:
    """As in files of columns that stand below each other, with quotes where texts hold some."""
    path = written(tmp_path, ' a   b\n 1   "x y"  \r\n\n-1 "x y" \n', name)
    table = read_table(path, delimiter=" ")
    assert [column.values.tolist() for column in table.columns] == [[1, -1], ["x y", "x y"]]
    (block,) = open_file(path, delimiter=" ").blocks()
    assert block.to_pydict() == {"a": ["1", "-1"], "b": ["x y", "x y"]}


@pytest.mark.parametrize("delimiter", [" ", "   ", ":", " ~ ", ","])
def test_a_name_within_the_only_column_tells_the_delimiter(tmp_path: Path, delimiter: str) -> None:
    """Whoever asks for the column hears what to say."""
    path = written(tmp_path, f"size{delimiter}y\n1.5{delimiter}yes\n", "t.tsv")
    sign = delimiter.strip() or " "
    for name in ("size", "y"):
        with pytest.raises(InputError, match=re.escape(f"its fields, give delimiter={sign!r}")):
            read_table(path).column(name)
    assert read_table(path, delimiter=sign).names == ("size", "y")


def test_quoted_delimiters_newlines_and_quotes(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, 'a,b\n"x,y","1\n2"\n"say ""hi""",z\n'))
    assert table.column("a").values.tolist() == ["x,y", 'say "hi"']
    assert table.column("b").values.tolist() == ["1\n2", "z"]


# --- hostile files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"a,b\n", "no rows below the header"),
        (b"a,b\n1,2\n1,2,3\n", "line 3: expected 2 fields, got 3, more than line 1 has names"),
        (b"# by tool 3\na,b\n1,2\n", "line 2: expected 1 field, got 2, more than line 1 has names"),
        (b"a,b\n1\n", "line 2: expected 2 fields, got 1"),
        (b'a,b\n"x\ny",1\n1\n', "line 4: expected 2 fields, got 1"),
        (b"a,b,a\n1,2,3\n", "line 1: column names must be distinct.*'a'"),
        (b"a,b\n1,\xff\n", "line 2: byte 0xff is not UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "line 1: byte 0xff is not UTF-8"),
        (b"a,b\n1,2\n1,\x00\n", "line 3: there is a NUL byte"),
        (b'a,b\n1,2\n"1,2\n3,4\n', "line 3: .*quote not closed"),
        (b"a,b\n1,inf\n2,0.5\n", "line 2: column 'b' holds inf"),
        (b"a,b\n1,1e999\n2,0.5\n", "line 2: column 'b' holds inf"),
    ],
)
def test_malformed_csv(tmp_path: Path, content: bytes, message: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(FormatError, match=message) as caught:
        read_table(path)
    assert str(path) in str(caught.value)


def test_columns_without_a_name_are_named_as_pandas_does(tmp_path: Path) -> None:
    """The index that pandas and R write, and what a comma at the end of a line makes."""
    pandas = pytest.importorskip("pandas")
    path = written(tmp_path, b",b,\n1,x,\n2,y,\n")
    table = read_table(path)
    assert table.names == ("Unnamed: 0", "b", "Unnamed: 2")
    assert list(pandas.read_csv(path).columns) == list(table.names)
    assert read_table(written(tmp_path, b",Unnamed: 0\n1,2\n")).names == (
        "Unnamed: 0_",
        "Unnamed: 0",
    )


def test_forced_numeric_names_line_and_value(tmp_path: Path) -> None:
    path = written(tmp_path, 'a,b\n1,"x\ny"\n,z\nbad,z\nworse,z\n')
    with pytest.raises(FormatError, match=r"line 5: column 'a'.*'bad'"):
        read_table(path, kinds={"a": "numeric"})


@pytest.mark.parametrize(
    "content",
    [b"not gzip", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-12]],  # no clock in a test's name
    ids=["not gzip", "cut off"],
)
def test_damaged_gzip(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(content)
    with pytest.raises(FormatError, match="gzip file is damaged"):
        read_table(path)


def test_absent_and_unknown_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*nothing\.csv"):
        read_table(tmp_path / "nothing.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=r"cannot read .*folder\.csv"):
        read_table(tmp_path / "folder.csv")
    for name in ("t.xlsx", "t", "t.gz", "t.parquet.gz"):
        with pytest.raises(InputError, match=r"the format of .* is unknown"):
            read_table(tmp_path / name)
    with pytest.raises(InputError, match="cannot read"):
        read_table("a\0.csv")
    with pytest.raises(InputError, match="no such file"):
        read_table(tmp_path / "t.parquet")


@settings(deadline=None, max_examples=150)
@given(data=st.binary(max_size=60), name=st.sampled_from(["t.csv", "t.arff", "t.tsv", "t.csv.gz"]))
def test_any_bytes_give_a_table_or_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(data)
    message, n_rows = "", 0
    try:
        n_rows = read_table(path).n_rows
    except InputError as error:
        message = str(error)
    assert n_rows > 0 or name in message


# --- round trip and other opinions ----------------------------------------------------------------

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6).map(
    lambda word: f"w{word}w"
)
rows = st.lists(
    st.tuples(
        words | st.none(), st.floats(allow_infinity=False, width=64), st.integers(-9, 9) | st.none()
    ),
    min_size=1,
    max_size=15,
)


@settings(deadline=None, max_examples=100)
@given(rows=rows, suffix=st.sampled_from(["csv", "csv.gz"]))
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[object, ...]], suffix: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"round.{suffix}"
    write_rows(path, ["word", "size", "code"], rows)
    kinds = {"word": "categorical", "size": "numeric", "code": "categorical"}
    table = read_table(path, kinds=kinds)
    assert table.column("word").values.tolist() == [row[0] for row in rows]
    np.testing.assert_array_equal(table.column("size").values, [row[1] for row in rows])
    assert table.column("code").values.tolist() == [row[2] for row in rows]


@pytest.mark.parametrize("seed", range(5))
def test_pandas_agrees(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=50) * 10.0 ** rng.integers(-9, 9, 50),
            "count": rng.integers(0, 1000, 50),
            "word": rng.choice(["a", "b c", 'd"e', "f,g"], 50),
        }
    ).mask(rng.random((50, 3)) < 0.1)
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    ours, theirs = read_table(path), pd.read_csv(path)
    np.testing.assert_allclose(ours.column("size").values, theirs["size"], rtol=1e-12)  # pandas 2
    np.testing.assert_array_equal(ours.column("count").values, theirs["count"])
    words = theirs["word"].astype(object)
    assert ours.column("word").values.tolist() == words.where(words.notna(), None).tolist()


# --- ARFF -----------------------------------------------------------------------------------------

WEATHER = """% a comment
@RELATION 'the weather'

@Attribute outlook {sunny, overcast, 'very rainy'}
@ATTRIBUTE "air temperature" REAL   % degrees
@attribute windy{TRUE,FALSE}
@attribute days integer
@attribute note string
@DATA
sunny, 85.5, FALSE, 1, 'it''s
'very rainy', ?, TRUE, 2, "50 % \\"wet\\""  % trailing
% between
?,70,FALSE,?,plain
"""


def test_arff_by_hand(tmp_path: Path) -> None:
    text = WEATHER.replace("'it''s", "'it\\'s'")
    table = read_table(written(tmp_path, text, "weather.arff"))
    assert table.names == ("outlook", "air temperature", "windy", "days", "note")
    outlook = table.column("outlook")
    assert outlook.categories == ("sunny", "overcast", "very rainy")
    assert outlook.codes.tolist() == [0, 2, -1]
    np.testing.assert_array_equal(table.column("air temperature").values, [85.5, np.nan, 70])
    assert table.column("windy").values.tolist() == ["FALSE", "TRUE", "FALSE"]
    assert table.column("days").kind == "numeric"
    assert table.column("note").values.tolist() == ["it's", '50 % "wet"', "plain"]


def test_arff_quoted_question_mark_is_a_value(tmp_path: Path) -> None:
    """Only a bare question mark is missing; NA is a state like any other."""
    text = "@relation r\n@attribute a {'?', NA}\n@data\n'?'\nNA\n?\n"
    assert read_table(written(tmp_path, text, "t.arff")).column("a").values.tolist() == [
        "?",
        "NA",
        None,
    ]


def test_arff_kinds_can_be_forced(tmp_path: Path) -> None:
    text = "@relation r\n@attribute a {10,2}\n@attribute b real\n@attribute s string\n@data\n"
    path = written(tmp_path, text + "2,1.0,7\n10,2,8\n", "t.arff")
    table = read_table(path, kinds={"a": "numeric", "b": "categorical", "s": "numeric"})
    assert table.column("a").values.tolist() == [2.0, 10.0]
    assert table.column("b").categories == (1, 2)
    assert table.column("s").values.tolist() == [7.0, 8.0]


HEADER = "@relation r\n@attribute a real\n@attribute b {x,y}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("@relation r\n", "no @data line"),
        ("@relation r\n@data\n1\n", "line 2: @data comes before"),
        (HEADER + "@data\n", "no rows after @data"),
        (HEADER + "1,x\n", "line 4: expected @relation"),
        (HEADER + "@data\n1,x\n1\n", "line 6: expected 2 values, got 1"),
        (HEADER + "@data\n1,x,2\n", "line 5: expected 2 values, got 3"),
        (HEADER + "@data\n1,z\n", "line 5: 'z' is not a declared state of 'b'"),
        (HEADER + "@data\n1,x\n\nq,x\n", "line 7: column 'a'.*'q', which is no number"),
        (HEADER + "@data\n1,'x\n", "line 5: quotes do not match"),
        (HEADER + "@data\n1,'x'y\n", "line 5: quotes do not match"),
        (HEADER + "@data\n1,x,{2}\n", "line 5: .* or has a weight"),
        (HEADER + "@data\n{0 1, 1 x}\n", "line 5: .* the row is sparse"),
        (HEADER + "@attribute A numeric\n@attribute a real\n", "line 5: .*distinct.*'a'"),
        ("@relation r\n@attribute d date 'yyyy'\n", "line 2: .*got \"date 'yyyy'\""),
        ("@relation r\n@attribute d relational\n", "line 2: .*got 'relational'"),
        ("@relation r\n@attribute d complex\n", "line 2: .*got 'complex'"),
        ("@relation r\n@attribute d\n", "line 2: .*got ''"),
        ("@relation r\n@attribute 'd numeric\n", "line 2: .*quote not closed"),
        ("@relation r\n@attribute d {a,b\n", "line 2: .*states is malformed"),
        ("@relation r\n@attribute d {}\n", "line 2: .*states is malformed"),
        ("@relation r\n@attribute d {a,a}\n", "line 2: .*declared twice"),
        ("@relation r\n@attribute d {a} real\n", "line 2: .*states is malformed"),
    ],
)
def test_malformed_arff(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_table(written(tmp_path, text, "t.arff"))


def test_hostile_arff_line_is_refused_at_once(tmp_path: Path) -> None:
    text = HEADER + "@data\n1," + " " * 100_000 + "'" + "\\" * 100_001 + "\n"
    with pytest.raises(FormatError, match="line 5"):
        read_table(written(tmp_path, text, "t.arff"))


def test_scipy_agrees_on_arff(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [
        f"{x:.6f},{c},{k}"
        for x, c, k in zip(
            rng.normal(size=40), rng.choice(["red", "green", "blue"], 40), range(40), strict=True
        )
    ]
    header = "@relation r\n@attribute x real\n@attribute c {red,green,blue}\n@attribute k integer\n"
    path = written(tmp_path, header + "@data\n" + "\n".join(lines) + "\n", "t.arff")
    theirs, meta = scipy_arff.loadarff(path)
    ours = read_table(path)
    assert ours.names == tuple(meta.names())
    np.testing.assert_array_equal(ours.column("x").values, theirs["x"])
    np.testing.assert_array_equal(ours.column("k").values, theirs["k"])
    assert ours.column("c").values.tolist() == [state.decode() for state in theirs["c"]]
    assert ours.column("c").categories == tuple(meta["c"][1])


# --- Parquet --------------------------------------------------------------------------------------


def test_a_long_constant_parquet_column_is_no_bomb(tmp_path: Path) -> None:
    """A million and a half equal values in few bytes are a table like any other."""
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": ["x"] * 1_500_000}).write_parquet(path)
    assert path.stat().st_size < 100_000
    assert read_table(path).n_rows == 1_500_000


def test_damaged_parquet(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"t\.parquet: not a readable Parquet file"):
        read_table(written(tmp_path, b"PAR1 but not really", "t.parquet"))
