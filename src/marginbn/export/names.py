r"""Names in files: one escape for whatever a format cannot hold.

A column may be called anything; most formats are not so free. What a format cannot write as it is
becomes ``\u{HEX}``, the code point in hexadecimal digits, and the backslash itself becomes
``\u{5c}``. So every ``\u{`` in a file we wrote is an escape, and reading it back is exact. The
empty name is ``\u{}`` where nothing would be taken for nothing.

Half a surrogate pair is no text and is refused when the file is encoded.
"""

from __future__ import annotations

import re

_HEX = frozenset("0123456789abcdefABCDEF")

UNQUOTABLE = re.compile(r'[\x00-\x1f\x7f"\\]')
"""What does not go between double quotes."""

UNPRINTABLE_XML = re.compile("^[ ]|[ ]$|[\x00-\x1f\x7f\\\\\ufffe\uffff]")
"""What XML text does not hold, or what readers strip from its ends."""

NO_WORD = re.compile(r'[\s\x00-\x1f\x7f\\"#]')
"""What does not go into a word of a file whose words are separated by white space."""


def escape(text: str, unsafe: re.Pattern[str]) -> str:
    r"""The name with every character that ``unsafe`` matches escaped.

    Examples
    --------
    >>> print(escape("a b", NO_WORD))
    a\u{20}b
    >>> unescape(escape("a b", NO_WORD))
    'a b'
    """
    return unsafe.sub(_escape_match, text) if text else "\\u{}"


def unescape(text: str) -> str:
    r"""The name behind an escaped one; ``\u{`` that is no escape stays as it is."""
    first, *rest = text.split("\\u{")
    return first + "".join(_unescape_part(part) for part in rest)


def quote(text: str) -> str:
    r"""The name between double quotes; :func:`unescape` reads what is inside.

    Examples
    --------
    >>> print(quote('say "yes", loud'))
    "say \u{22}yes\u{22}, loud"
    """
    return f'"{UNQUOTABLE.sub(_escape_match, text)}"'


def _escape_match(match: re.Match[str]) -> str:
    return f"\\u{{{ord(match[0]):x}}}"


def _unescape_part(part: str) -> str:
    digits, brace, rest = part.partition("}")
    if not brace or len(digits) > 6 or not _HEX.issuperset(digits):
        return "\\u{" + part
    code = int(digits, 16) if digits else None
    if code is None:
        return rest
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return "\\u{" + part
    return chr(code) + rest
