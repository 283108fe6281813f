"""A grid of cells as Markdown, CSV and HTML."""

from __future__ import annotations

import csv
import html
import io
from dataclasses import dataclass, field

MISSING = "—"


@dataclass(frozen=True)
class Cell:
    """Our figure, in bold if it is the best, and the published one beside it."""

    ours: str = MISSING
    published: str = ""
    bold: bool = False
    published_bold: bool = False


@dataclass(frozen=True)
class Grid:
    """A table with a title, a header and notes; the first cell of a row is its name."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    notes: tuple[str, ...] = field(default=())


def to_markdown(grid: Grid) -> str:
    lines = [f"### {grid.title}", ""]
    lines += [_row(grid.header), _row(["---"] * len(grid.header))]
    lines += [_row([name, *map(_markdown_cell, cells)]) for name, cells in grid.rows]
    lines += ["", *(f"- {note}" for note in grid.notes)]
    return "\n".join(lines).rstrip() + "\n"


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    ours = f"**{cell.ours}**" if cell.bold else cell.ours
    if not cell.published:
        return ours
    published = f"**{cell.published}**" if cell.published_bold else cell.published
    return f"{ours} ({published})"


def to_csv(grid: Grid) -> str:
    """One line per cell: row, column, ours, published, best."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "column", "ours", "published", "best"])
    for name, cells in grid.rows:
        for column, cell in zip(grid.header[1:], cells, strict=True):
            ours = "" if cell.ours == MISSING else cell.ours
            writer.writerow([name, column, ours, cell.published, int(cell.bold)])
    return text.getvalue()


STYLE = """
body { font-family: sans-serif; margin: 2em; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { padding: .25em .6em; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; }
.published { color: #777; font-size: smaller; display: block; }
"""


def to_html(grids: list[Grid], heading: str, remarks: list[str]) -> str:
    """One page of all grids."""
    title = html.escape(heading)
    parts = [
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        f"<style>{STYLE}</style></head><body><h1>{title}</h1>",
        *(f"<p>{html.escape(remark)}</p>" for remark in remarks),
        *map(_html_grid, grids),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _html_grid(grid: Grid) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in grid.header)
    body = "\n".join(
        f"<tr><td>{html.escape(name)}</td>{''.join(map(_html_cell, cells))}</tr>"
        for name, cells in grid.rows
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in grid.notes)
    return (
        f"<h2>{html.escape(grid.title)}</h2>\n<table><thead><tr>{head}</tr></thead>\n"
        f"<tbody>{body}</tbody></table>\n<ul>{notes}</ul>"
    )


def _html_cell(cell: Cell) -> str:
    ours = f"<b>{html.escape(cell.ours)}</b>" if cell.bold else html.escape(cell.ours)
    if not cell.published:
        return f"<td>{ours}</td>"
    published = html.escape(cell.published)
    published = f"<b>{published}</b>" if cell.published_bold else published
    return f'<td>{ours}<span class="published">{published}</span></td>'
