"""Plain technical English: no private words, no sentence over 30 words.

Covered: the README, the first page, getting started, the glossary, the guide, the stories of the
gallery, the pages of theory, the texts of the report and of every message in ``src``, and the help
of every command and option, the latter in at most 20 words, and docstrings of public names.
Not covered: pages and tables made from records, other docstrings.

Code, formulas and literal names are not prose and are left out. These words of the vocabulary have
an ordinary meaning too ("time limit", "JSON object", "drop a column"), which a test cannot separate
from the private one, so they are not listed: drop, limit, object, places, store.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import marginbn
from marginbn.cli import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PRODUCT = ROOT / "src" / "marginbn"
MADE = ("benchmarks", "recovery", "results")
"""Pages from records."""
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(
        page
        for page in sorted(DOCS.rglob("*.rst"))
        if page.stem not in MADE and not {"_templates", "generated"} & set(page.parts)
    ),
]
STORIES = sorted((ROOT / "examples").glob("plot_*.py"))
MOST_WORDS = 30
MOST_WORDS_OF_AN_OPTION = 20
PRIVATE = re.compile(
    r"""\b(
    look-ahead | trials?\ of\ sides | believed | gains\ observed | fix_box | sides? | neighbours?
    | start(s|ed)?\ from\ where | raised\ prices | deepener | marry(ing)? | heirs?
    | go(es)?\ on | went\ on | sittings? | tells? | told | says? | said | beside | anew
    | rooms? | houses? | roads? | waist | twins? | doubts? | of\ its\ kind
    | stands? | stood | lives?
    | rows?\ it\ has\ not\ seen | rows\ that\ judge
    | holes? | left\ open | speaks?\ for | margin\ parts | optimal,\ proven | proven
    | whoever | nobody | anybody | everybody | one\ (is|may|can|could|must|wants|has)
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
LITERAL = re.compile(
    r"^( *)(?:\.\. (?:code-block|math|include|image|toctree|figure)::[^\n]*|(?!\.\. )[^\n]*::)\n"
    r"(?:\n|\1 +[^\n]*\n)*",
    re.MULTILINE,
)


def text_of(page: Path) -> str:
    """The text of a page; of a story the docstring and the comments between its parts."""
    text = page.read_text(encoding="utf-8") + "\n"
    if page.suffix != ".py":
        return text
    comments = re.findall(r"^# %%\n((?:#.*\n)+)", text, re.MULTILINE)
    pieces = [ast.get_docstring(ast.parse(text)) or "", *comments]
    return re.sub(r"^# ?", "", "\n\n".join(pieces), flags=re.MULTILINE)


def prose_of(page: Path) -> str:
    """The text without code and markup; an empty line ends a heading, a cell, an item."""
    text = text_of(page)
    text = re.sub(r"```.*?```", "\n\n", text, flags=re.DOTALL)  # Markdown
    text = re.sub(r"^\|(.*)\|$|^#+(.*)$", r"\n\n\1\2\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^([^\n]+)\n[=~^-]{3,}$", r"\n\n\1\n\n", text, flags=re.MULTILINE)  # headings
    text = re.sub(r"^ *>>>(.*\n)+?(?=\n|$)", "\n", text, flags=re.MULTILINE)  # examples
    text = re.sub(r"^ *\.\. glossary::\n", "\n", text, flags=re.MULTILINE)
    text = LITERAL.sub(lambda block: "\n\n", text) if page.suffix != ".md" else text
    text = re.sub(r" \| |[|-]{3,}|(?<=\S) {2,}(?=\S)|={3,} +={3,}", "\n\n", text)  # cells
    text = re.sub(r"^ *:[a-z-]+:.*$|^ *\.\. .*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r":\w+:`[^`]*`|``.*?``|`[^`]*`", "CODE", text, flags=re.DOTALL)
    text = re.sub(r"\b(left|right|right-hand|each|both|either) sides?\b", "", text)  # equations
    return re.sub(r"^ *(\* - |- |\* |\d\. )", "\n\n", text, flags=re.MULTILINE)


def sentences(text: str) -> Iterator[str]:
    for piece in re.split(r"\n\s*\n", text):
        yield from re.split(r"(?<=[.!?])[)*\"']*\s+", " ".join(piece.split()))


def faults(text: str) -> list[str]:
    """What a reader would stumble over: the word, or the length, with the sentence."""
    found = []
    for sentence in sentences(text):
        found += [f"{match[0]!r}: {sentence}" for match in PRIVATE.finditer(sentence)]
        length = len(re.findall(r"\S*\w\S*", sentence))
        found += [f"{length} words: {sentence}"] * (length > MOST_WORDS)
    return found


def helps() -> Iterator[tuple[str, str]]:
    """Help texts of all commands and of their options, by names."""
    program = typer.main.get_command(app)
    stack = [("marginbn", program)]
    while stack:
        name, command = stack.pop()
        yield name, command.help or ""
        for option in command.params:
            if text := getattr(option, "help", None):
                yield f"{name} {option.opts[0]}", text
        stack += [(f"{name} {key}", sub) for key, sub in getattr(command, "commands", {}).items()]


@pytest.mark.parametrize("page", PAGES + STORIES, ids=lambda page: page.stem)
def test_pages_are_in_plain_english(page: Path) -> None:
    prose = prose_of(page)
    assert len(prose.split()) > 10, "nothing was read"
    assert faults(prose) == []


def test_help_is_in_plain_english() -> None:
    texts = dict(helps())
    assert len(texts) > 80
    assert {name: faults(text) for name, text in texts.items() if faults(text)} == {}
    options = [name for name in texts if " --" in name]
    plain = {name: re.sub(r"\[default.*?\]", "", texts[name]) for name in options}
    lengths = {name: len(re.findall(r"\S*\w\S*", text)) for name, text in plain.items()}
    assert [name for name in lengths if lengths[name] > MOST_WORDS_OF_AN_OPTION] == []


def docstrings() -> Iterator[tuple[str, str]]:
    """Prose of the public names and of the methods of public classes."""
    for name in marginbn.__all__:
        thing = getattr(marginbn, name)
        members = vars(thing) if inspect.isclass(thing) else {}
        methods = [member for key, member in members.items() if not key.startswith("_")]
        for part in (thing, *methods):
            if callable(part) or isinstance(part, property):
                text = re.sub(
                    r"^ *>>>(.*\n)+?(?=\n|$)", "\n", f"{inspect.getdoc(part)}\n", flags=re.M
                )
                yield name, re.sub(r":\w+:`[^`]*`|``.*?``|`[^`]*`", "CODE", text, flags=re.DOTALL)


def test_docstrings_are_in_plain_english() -> None:
    texts = list(docstrings())
    assert len(texts) > 100
    assert [(name, fault) for name, text in texts for fault in faults(text)] == []


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every string of at least two words that is no docstring; what is filled in
    at run time is VALUE, what is quoted as code CODE.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= set(node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [
                part.value if isinstance(part, ast.Constant) else "VALUE" for part in node.values
            ]
        else:
            parts = [getattr(node, "value", None)] * (node not in skipped)
        if all(isinstance(part, str) for part in parts):
            text = re.sub(r"``.*?``|`[^`]*`", "CODE", "".join(map(str, parts)))
            if len(re.findall(r"[A-Za-z]{2,}", text)) > 1:
                yield getattr(node, "lineno", 0), re.sub(r"\n +", "\n\n", text)


@pytest.mark.parametrize(
    "folder",
    sorted({path.parent for path in PRODUCT.rglob("*.py")}),
    ids=lambda folder: folder.name,
)
def test_messages_are_in_plain_english(folder: Path) -> None:
    found = [
        f"{path.name}:{line}: {fault}"
        for path in sorted(folder.glob("*.py"))
        for line, text in messages(path)
        for fault in faults(text)
    ]
    assert found == []


def test_texts_of_the_page_are_in_plain_english() -> None:
    """What the scripts of the report write: strings with a space, without the code inside."""
    texts = 0
    for path in sorted((PRODUCT / "report" / "static").glob("*.js")):
        code = re.sub(r"^ *//.*", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for text in re.findall(r'(["`])([^"`\n]* [^"`\n]*)\1', code):
            texts += 1
            assert faults(re.sub(r"\$\{[^}]*\}", "VALUE", text[1])) == [], path.name
    assert texts > 30


def test_faults_are_found(tmp_path: Path) -> None:
    assert faults("The page says so. It is short.") == ["'says': The page says so."]
    assert len(faults("word " * 31)) == 1
    assert faults("word " * 30 + "\n\n" + "word " * 30) == []
    source = tmp_path / "source.py"
    source.write_text('"""No message."""\nname = f"{x} says so"\nshort = "tells"\n', "utf-8")
    assert list(messages(source)) == [(2, "VALUE says so")]
    (page,) = [page for page in PAGES if page.stem == "gap"]
    assert "import" not in prose_of(page)
