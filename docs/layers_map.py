"""The map of the package for ``architecture.rst``, drawn from ``layers.toml`` and the imports.

One row per layer, in the order of the list: its name, what it does and the value it hands on. The
square to its right has a dot for every layer that it imports; imports point up the list, so all
dots are left of the diagonal. Colours come from the theme's variables, so it suits dark pages too.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from layers import LAYERS, MODULES, ORDERS, read_imports, read_layers

ROW, BOX, CELL = 46, 560, 24  # height of a row, width of a box, width of a column of the square
TOP, LEFT = 96, 8
SQUARE = LEFT + BOX + 28
ENGINE = ("problem", "solvers", "scoring", "proof")
"""The half that maximises; its boxes have a coloured edge."""

STYLE = """
.layers text { font: 13px sans-serif; fill: var(--color-foreground-primary, #111); }
.layers .does { font-size: 12px; fill: var(--color-foreground-secondary, #555); }
.layers .name { font-weight: bold; }
.layers .value { font-family: monospace; fill: var(--color-brand-content, #1f5f99); }
.layers .box { fill: var(--color-background-secondary, #f6f7f9); }
.layers .box, .layers .line { stroke: var(--color-background-border, #d5d8dd); }
.layers .self { fill: var(--color-background-border, #d5d8dd); }
.layers .dot { fill: var(--color-brand-content, #1f5f99); }
"""


def imports_between_layers() -> dict[str, set[str]]:
    """The other layers that each layer imports; the public names are not one."""
    found: dict[str, set[str]] = {layer: set() for layer in LAYERS}
    for name, path in MODULES.items():
        if name != "marginbn":
            source = path.read_text(encoding="utf-8")
            own = name.split(".")[1]
            imported = {i.split(".")[1] for i in read_imports(source, MODULES) if "." in i}
            found[own] |= imported - {own}
    return found


def draw_map() -> str:
    """The map as SVG."""
    imports = imports_between_layers()
    width, height = SQUARE + CELL * len(LAYERS) + 40, TOP + ROW * len(LAYERS)
    rows = [part for k in range(len(LAYERS)) for part in (*_box(k), *_cells(k, imports))]
    return "\n".join(
        [
            f'<svg class="layers" xmlns="http://www.w3.org/2000/svg" role="img" '
            f'aria-label="Layers of the package and their imports" viewBox="0 0 {width} {height}">',
            f"<style>{STYLE}</style>",
            *(_heading(k) for k in range(len(LAYERS))),
            *rows,
            "</svg>\n",
        ]
    )


def _middle(k: int) -> float:
    """Of the k-th column of the square."""
    return SQUARE + CELL * (k + 0.5)


def _heading(k: int) -> str:
    x, y = _middle(k) + 4, TOP - 8
    return f'<text x="{x}" y="{y}" transform="rotate(-60 {x} {y})">{escape(LAYERS[k])}</text>'


def _box(k: int) -> Iterator[str]:
    layer, y = read_layers()[k], TOP + ROW * k
    yield f'<rect class="box" x="{LEFT}" y="{y + 2}" width="{BOX}" height="{ROW - 4}" rx="5"/>'
    if layer["name"] in ENGINE:
        yield f'<rect class="dot" x="{LEFT}" y="{y + 2}" width="5" height="{ROW - 4}" rx="2"/>'
    yield f'<text class="name" x="{LEFT + 12}" y="{y + 19}">{escape(layer["name"])}</text>'
    yield f'<text class="does" x="{LEFT + 12}" y="{y + 36}">{escape(layer["does"])}</text>'
    if "hands_on" in layer:
        value, x = escape(layer["hands_on"]), LEFT + BOX - 12
        yield f'<text class="value" x="{x}" y="{y + 19}" text-anchor="end">→ {value}</text>'


def _cells(k: int, imports: dict[str, set[str]]) -> Iterator[str]:
    y = TOP + ROW * (k + 0.5)
    yield f'<line class="line" x1="{SQUARE}" x2="{_middle(k)}" y1="{y}" y2="{y}"/>'
    yield f'<rect class="self" x="{_middle(k) - 5}" y="{y - 5}" width="10" height="10"/>'
    for j, other in enumerate(LAYERS):
        if other in imports[LAYERS[k]]:
            title = f"<title>{escape(LAYERS[k])} imports {escape(other)}</title>"
            yield f'<circle class="dot" cx="{_middle(j)}" cy="{y}" r="5">{title}</circle>'


def list_modules() -> str:
    """The modules of every layer in order with their first sentences, as part of a page."""
    parts = []
    for layer in LAYERS:
        names = [f"marginbn.{layer}.{m}" for m in ORDERS.get(f"marginbn.{layer}", ())]
        if names:
            parts.append(f"{layer}\n{'~' * len(layer)}\n")
            parts.extend(f"``{name.split('.', 2)[2]}``\n    {_summary(name)}\n" for name in names)
    return "\n".join(parts)


def _summary(module: str) -> str:
    text = MODULES[module].read_text(encoding="utf-8").removeprefix('"""')
    return " ".join(text.split("\n\n")[0].split('"""')[0].split()).replace("\\", "\\\\")
