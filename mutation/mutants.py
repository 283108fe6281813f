"""Mutants of a source: one place of its syntax tree changed.

    a < b        a <= b, a >= b; the like for <=, > and >=
    a == b       a != b, and the reverse; the like for in and ``is``
    a + b        a - b; the like for * and /, // and *, % and //, ** and *, | and &, << and >>
    a and b      a or b, and the reverse
    not a, -a    a; also ~a
    1, 0.5       one more, one less
    True         False, and the reverse
    max          min; floor and ceil, any and all, log and exp, ...: see SWAPS
    if a         if True, if False; also in ``b if a else c``
    break        continue, and the reverse
    f(a)         nothing, where it stands as a statement

Left alone, because nobody can test it or it would change no more than a text: annotations,
docstrings, decorators, what a ``raise`` says, texts in general, ``strict=`` of ``zip`` and code for
type checkers.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

_OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitAnd: (ast.BitOr,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}

_PAIRS = (
    ("min", "max"),
    ("minimum", "maximum"),
    ("argmin", "argmax"),
    ("any", "all"),
    ("floor", "ceil"),
    ("log", "exp"),
    ("zeros", "ones"),
    ("issubset", "isdisjoint"),
)

SWAPS = dict(_PAIRS) | {b: a for a, b in _PAIRS}
"""Names that take the place of one another."""


@dataclass(frozen=True)
class Mutant:
    """One change, and the code of the module that has it."""

    line: int
    column: int
    change: str
    code: CodeType

    @property
    def place(self) -> str:
        """Line, column and change: the name of the mutant within one source."""
        return f"{self.line}:{self.column} {self.change}"


def make_mutants(source: str, path: str) -> Iterator[Mutant]:
    """All mutants of a source, line by line."""
    tree = ast.parse(source)
    spared = _spared(tree)
    for place in sorted(_places(tree), key=_position):
        node = place.content
        if node in spared:
            continue
        for other in _alternatives(node):
            place.put(other)
            try:
                code = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
                change = f"{_text(node)} -> {_text(other)}"
                yield Mutant(node.lineno, node.col_offset, change, code)  # type: ignore[attr-defined]
            except SyntaxError:  # for instance a negative number where a pattern stands
                pass
            finally:
                place.put(node)


def _text(node: ast.AST) -> str:
    """The node in one line, the body of a statement left out."""
    if isinstance(node, ast.If):
        return f"if {ast.unparse(node.test)}"
    return ast.unparse(node)


# ------------------------------------------------------------------------------------- places


@dataclass(frozen=True)
class _Place:
    """Where a node hangs in the tree."""

    parent: ast.AST
    field: str
    index: int | None

    @property
    def content(self) -> ast.AST:
        value = getattr(self.parent, self.field)
        node: ast.AST = value if self.index is None else value[self.index]
        return node

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def _places(tree: ast.AST) -> list[_Place]:
    found = []
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if isinstance(value, ast.AST):
                found.append(_Place(parent, field, None))
            elif isinstance(value, list):
                places = (i for i, item in enumerate(value) if isinstance(item, ast.AST))
                found += [_Place(parent, field, i) for i in places]
    return found


def _position(place: _Place) -> tuple[int, int]:
    node = place.content
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _spared(tree: ast.AST) -> set[ast.AST]:
    """Nodes inside of what is left alone."""
    return {
        inner for node in ast.walk(tree) for top in _left_alone(node) for inner in ast.walk(top)
    }


def _left_alone(node: ast.AST) -> Iterator[ast.AST]:
    for field in ("annotation", "returns"):
        if getattr(node, field, None) is not None:
            yield getattr(node, field)
    yield from getattr(node, "decorator_list", ())
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.keyword(arg="strict"):
            yield node
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            yield node


# ------------------------------------------------------------------------------------- changes


def _alternatives(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in place of a node."""
    match node:
        case ast.Compare(ops=operators):
            for i, operator in enumerate(operators):
                for other in _OPERATORS.get(type(operator), ()):
                    yield _changed(node, ops=[*operators[:i], other(), *operators[i + 1 :]])
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) | ast.BoolOp(op=operator):
            for other in _OPERATORS.get(type(operator), ()):
                yield _changed(node, op=other())
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield _changed(node, value=not value)
        case ast.Constant(value=int(value) | float(value)):
            more, less = value + 1, value - 1
            yield _changed(node, value=more if more != value else 2 * value)
            yield _changed(node, value=less if less != value else value / 2)
        case ast.Name(id=name, ctx=ast.Load()) if name in SWAPS:
            yield _changed(node, id=SWAPS[name])
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in SWAPS:
            yield _changed(node, attr=SWAPS[name])
        case ast.If() | ast.IfExp():
            yield _changed(node, test=ast.Constant(True))
            yield _changed(node, test=ast.Constant(False))
        case ast.Break():
            yield ast.copy_location(ast.Continue(), node)
        case ast.Continue():
            yield ast.copy_location(ast.Break(), node)
        case ast.Expr(value=ast.Call()):
            yield ast.copy_location(ast.Pass(), node)


def _changed(node: ast.AST, **fields: object) -> ast.AST:
    """The node with other fields; it shares the rest with the old one."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other
