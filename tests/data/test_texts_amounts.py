"""Numbers as people write them: which texts are amounts, and what becomes of their column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marginbn import NaiveBayesClassifier, inspect_data, load_model, read_table, save_model
from marginbn.data.columns import Column
from marginbn.data.table import as_table
from marginbn.data.texts import AmountKind, as_amounts, find_amounts
from marginbn.exceptions import DataWarning, InputError


def column_of(texts: list[str], name: str = "x") -> Column:
    return Column.categorical(name, np.arange(len(texts)), texts)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("$1,234.50", 1234.5),
        ("-$5.25", -5.25),
        ("$-5.25", -5.25),
        ("($3.20)", -3.2),
        ("(1,234)", -1234),
        ("12.5 %", 12.5),
        ("12.5%", 12.5),
        ("80 kg", 80),
        ("115 m2", 115),
        ("3.5 km/h", 3.5),
        ("100 sq ft", 100),
        ("21.5 °C", 21.5),
        ("48.13743°", 48.13743),
        ("10,000+", 10000),
        ("US$ 5", 5),
        ("USD 12.10", 12.1),
        ("1'234.5", 1234.5),
        ("1 234 567", 1234567),
        ("£.50", 0.5),
        ("1.2M", 1.2e6),
        ("250k", 250e3),
        ("5.1e-3", 0.0051),
        (" 7 ", 7),
    ],
)
def test_a_number_is_read_however_it_is_written(text: str, number: float) -> None:
    assert as_amounts(column_of([text]), "amount").numbers.tolist() == [number]


@pytest.mark.parametrize(
    ("text", "number"),
    [("1.234,50 €", 1234.5), ("810,48", 810.48), ("-0,5 %", -0.5), ("1.234", 1234), ("1,5", 1.5)],
)
def test_a_decimal_comma_is_one_where_it_is_said(text: str, number: float) -> None:
    """The point sets thousands apart."""
    assert as_amounts(column_of([text]), "decimal-comma").numbers.tolist() == [number]


@pytest.mark.parametrize(
    "text",
    [
        *("ACC-1", "SKU33", "brand5", "site13.com", "A4", "Q1", "#5", "x5"),  # names
        *("02134", "007", "1,23,456", "18-24", "205/60", "<0.1", "10+ years"),  # codes and ranges
        *("2021-03-04", "10:30", "192.168.1.1", "(5", "5)", "--5", "(-5)", "$", "%", "١٢"),
    ],
)
@pytest.mark.parametrize("kind", ["amount", "decimal-comma"])
def test_names_codes_dates_and_ranges_are_no_amounts(text: str, kind: AmountKind) -> None:
    """They are refused with the column, the row, the value and how to write it."""
    with pytest.raises(InputError, match=r"column 'x' is of kind .* row 0 .* holds"):
        as_amounts(column_of([text]), kind)


def test_the_column_decides_between_point_and_comma() -> None:
    plain = [f"{i},{i + 100}" for i in range(1, 30)]
    assert find_amounts(column_of(plain)) == ("amount", ())
    assert find_amounts(column_of([*plain, "950,5"])) == ("decimal-comma", ())
    assert find_amounts(column_of([*plain, "950.5"])) == ("amount", ())


@pytest.mark.parametrize(
    "texts",
    [
        [str(i) for i in range(30)],  # may be codes: numbers as text stay text
        [f"{i} kg" if i % 2 else f"{i} lb" for i in range(30)],  # not to be compared
        [f"${i}" if i % 2 else f"€{i}" for i in range(30)],
        [f"{i} stars" for i in range(5)],  # few whole numbers are codes
        [f"{i}.5 kg" for i in range(20)] + [f"word {i}" for i in range(10)],
        [f"no. {i}" for i in range(30)],
    ],
)
def test_other_texts_stay_categories(texts: list[str]) -> None:
    """A column becomes numbers only if all but a few words are."""
    assert find_amounts(column_of(texts)) is None


def test_a_few_words_among_numbers_are_missing() -> None:
    """At most one value in twenty; plain numbers with a word among them count, too."""
    texts = [f"{i}.5" for i in range(40)] + ["unknown"]
    assert find_amounts(column_of(texts)) == ("amount", ("unknown",))
    numbers = as_amounts(column_of(texts), "amount", ["unknown"]).numbers
    assert numbers[1] == 1.5
    assert np.isnan(numbers[-1])


def raw_rows(n: int = 80) -> tuple[list[list[str]], list[str]]:
    rows = [[f"${1000 * i + 17:,}.50", "red" if i % 3 else "blue"] for i in range(n)]
    return rows, ["rich" if i >= n // 2 else "poor" for i in range(n)]


def test_a_classifier_learns_from_amounts_and_says_so(tmp_path: Path) -> None:
    """They were left out as identifiers; saved and loaded it predicts the same."""
    rows, labels = raw_rows()
    with pytest.warns(DataWarning, match=r"texts read as numbers: 'x0'; column_kinds="):
        classifier = NaiveBayesClassifier().fit(rows, labels)
    assert classifier.score(rows, labels) == 1.0
    assert classifier.predict([["$79,000", "red"], ["$5", "blue"]]).tolist() == ["rich", "poor"]
    save_model(classifier, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert (loaded.predict_proba(rows) == classifier.predict_proba(rows)).all()
    assert loaded.predict([[79000, "red"]]).tolist() == ["rich"]
    with pytest.raises(InputError, match=r"'a lot'; write amounts as in 1,234\.50"):
        loaded.predict([["a lot", "red"]])


def test_whoever_wants_texts_keeps_them() -> None:
    rows, labels = raw_rows()
    with pytest.warns(DataWarning, match="rare categories merged .* 31 of 'x0'"):
        NaiveBayesClassifier(column_kinds={"x0": "categorical"}).fit(rows, labels)


def test_account_numbers_with_a_word_among_them_are_still_identifiers() -> None:
    """As numbers they are in order, no two equal."""
    rows = [[str(1000 + i), "a"] for i in range(99)] + [["none", "b"]]
    with pytest.warns(DataWarning, match="left out as identifiers: 'x0'"):
        NaiveBayesClassifier().fit(rows, [i % 2 for i in range(100)])


def test_the_report_shows_how_the_numbers_are_written() -> None:
    """Kind, remark, and words that count as missing."""
    rows, labels = raw_rows()
    rows[3][0] = "unknown"
    (column, _) = inspect_data(rows, labels).columns
    assert (column.kind, column.n_missing, column.n_distinct) == ("amount", 1, 79)
    assert column.remark == "numbers as in '$1,017.50'"


def test_a_european_file_reads_as_its_twin(tmp_path: Path) -> None:
    """Semicolons, decimal commas and latin-1 against commas, points and UTF-8."""
    values = [(17.25 * i, "Köln" if i % 2 else "München") for i in range(60)]
    twin = "Miete,Ort\n" + "".join(f"{m},{o}\n" for m, o in values)
    own = "Miete;Ort\n" + "".join(f"{m}".replace(".", ",") + f";{o}\n" for m, o in values)
    (tmp_path / "twin.csv").write_text(twin, encoding="utf-8")
    (tmp_path / "own.csv").write_text(own, encoding="latin-1")
    labels = ["dear" if m > 500 else "cheap" for m, _ in values]
    with pytest.warns(DataWarning, match=r"'Miete' \(decimal comma\)"):
        found = NaiveBayesClassifier().fit(
            read_table(tmp_path / "own.csv", encoding="latin-1"), labels
        )
    expected = NaiveBayesClassifier().fit(read_table(tmp_path / "twin.csv"), labels)
    assert found.network_.variables == expected.network_.variables
    table = as_table([["1.034,5", "Köln"]], names=["Miete", "Ort"])
    assert found.predict(table).tolist() == ["dear"]
