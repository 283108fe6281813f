"""The map of the package for ``architecture.rst``, drawn from ``rooms.toml`` and the imports.

One row per room, in the order of the list: its name, what it does and the value it hands on. The
square to its right has a dot for every room that it imports; since imports point up the list, all
dots lie left of the diagonal. Colours come from the theme's variables, so it suits dark pages too.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from rooms import MODULES, ORDERS, ROOMS, read_imports, read_rooms

ROW, BOX, CELL = 46, 560, 24  # height of a row, width of a box, width of a column of the square
TOP, LEFT = 96, 8
SQUARE = LEFT + BOX + 28
STYLE = """
.rooms text { font: 13px sans-serif; fill: var(--color-foreground-primary, #111); }
.rooms .does { font-size: 12px; fill: var(--color-foreground-secondary, #555); }
.rooms .name { font-weight: bold; }
.rooms .value { font-family: monospace; fill: var(--color-brand-content, #1f5f99); }
.rooms .box { fill: var(--color-background-secondary, #f6f7f9); }
.rooms .box, .rooms .line { stroke: var(--color-background-border, #d5d8dd); }
.rooms .self { fill: var(--color-background-border, #d5d8dd); }
.rooms .dot { fill: var(--color-brand-content, #1f5f99); }
"""


def imports_between_rooms() -> dict[str, set[str]]:
    """The other rooms that each room imports; the public names are no room."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for name, path in MODULES.items():
        if name != "marginbn":
            source = path.read_text(encoding="utf-8")
            own = name.split(".")[1]
            imported = {i.split(".")[1] for i in read_imports(source, MODULES) if "." in i}
            found[own] |= imported - {own}
    return found


def draw_map() -> str:
    """The map as SVG."""
    imports = imports_between_rooms()
    width, height = SQUARE + CELL * len(ROOMS) + 40, TOP + ROW * len(ROOMS)
    rows = [part for k in range(len(ROOMS)) for part in (*_box(k), *_cells(k, imports))]
    return "\n".join(
        [
            f'<svg class="rooms" xmlns="http://www.w3.org/2000/svg" role="img" '
            f'aria-label="Rooms of the package and their imports" viewBox="0 0 {width} {height}">',
            f"<style>{STYLE}</style>",
            *(_heading(k) for k in range(len(ROOMS))),
            *rows,
            "</svg>\n",
        ]
    )


def _middle(k: int) -> float:
    """Of the k-th column of the square."""
    return SQUARE + CELL * (k + 0.5)


def _heading(k: int) -> str:
    x, y = _middle(k) + 4, TOP - 8
    return f'<text x="{x}" y="{y}" transform="rotate(-60 {x} {y})">{escape(ROOMS[k])}</text>'


def _box(k: int) -> Iterator[str]:
    room, y = read_rooms()[k], TOP + ROW * k
    yield f'<rect class="box" x="{LEFT}" y="{y + 2}" width="{BOX}" height="{ROW - 4}" rx="5"/>'
    yield f'<text class="name" x="{LEFT + 12}" y="{y + 19}">{escape(room["name"])}</text>'
    yield f'<text class="does" x="{LEFT + 12}" y="{y + 36}">{escape(room["does"])}</text>'
    if "hands_on" in room:
        value, x = escape(room["hands_on"]), LEFT + BOX - 12
        yield f'<text class="value" x="{x}" y="{y + 19}" text-anchor="end">→ {value}</text>'


def _cells(k: int, imports: dict[str, set[str]]) -> Iterator[str]:
    y = TOP + ROW * (k + 0.5)
    yield f'<line class="line" x1="{SQUARE}" x2="{_middle(k)}" y1="{y}" y2="{y}"/>'
    yield f'<rect class="self" x="{_middle(k) - 5}" y="{y - 5}" width="10" height="10"/>'
    for j, other in enumerate(ROOMS):
        if other in imports[ROOMS[k]]:
            title = f"<title>{escape(ROOMS[k])} imports {escape(other)}</title>"
            yield f'<circle class="dot" cx="{_middle(j)}" cy="{y}" r="5">{title}</circle>'


def list_modules() -> str:
    """The modules of every room in order with their first sentences, as part of a page."""
    parts = []
    for room in ROOMS:
        names = [f"marginbn.{room}.{m}" for m in ORDERS.get(f"marginbn.{room}", ())]
        if names:
            parts.append(f"{room}\n{'~' * len(room)}\n")
            parts.extend(f"``{name.split('.', 2)[2]}``\n    {_summary(name)}\n" for name in names)
    return "\n".join(parts)


def _summary(module: str) -> str:
    text = MODULES[module].read_text(encoding="utf-8").removeprefix('"""')
    return " ".join(text.split("\n\n")[0].split('"""')[0].split()).replace("\\", "\\\\")
