"""HTML and SVG text in which every name is harmless, by construction.

:func:`element` escapes whatever is not :class:`Markup`, and only :func:`element` and the few
functions beside it make markup.
"""

from __future__ import annotations

from html import escape

from marginbn.network.labels import one_line


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | Markup


def element(tag: str, *children: Child, **attributes: object) -> Markup:
    """An element with its children; ``class_`` and ``data_row`` are ``class`` and ``data-row``.

    Attributes that are None are left out.

    Examples
    --------
    >>> element("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_escaped(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{named}>{join(*children)}</{tag}>")


def join(*children: Child) -> Markup:
    """Several pieces one after the other."""
    return Markup("".join(c if isinstance(c, Markup) else _escaped(c) for c in children))


def name(text: str) -> Markup:
    """A name from the data, on its own in right-to-left text."""
    return element("bdi", visible(text))


def visible(text: str) -> str:
    """A name that can be seen, even where there is nothing to see."""
    return text if one_line(text).strip() else "(blank)"


def table(header: list[Child], rows: list[list[Child]], **attributes: object) -> Markup:
    """A table whose first column holds the heads of the rows."""
    head = element("tr", *(element("th", cell, scope="col") for cell in header))
    body = [
        element("tr", element("th", first, scope="row"), *(element("td", c) for c in others))
        for first, *others in rows
    ]
    content = element("table", element("thead", head), element("tbody", *body), **attributes)
    return element("div", content, class_="scroll", tabindex="0")


def definitions(pairs: list[tuple[str, Child]], **attributes: object) -> Markup:
    """A list of terms with their values."""
    entries = [element("div", element("dt", term), element("dd", value)) for term, value in pairs]
    return element("dl", *entries, **attributes)


def _escaped(text: str) -> str:
    """Escaped for text and attributes; characters that HTML has no room for are gone."""
    return escape("".join(c for c in one_line(text) if c not in "\ufffe\uffff"))
