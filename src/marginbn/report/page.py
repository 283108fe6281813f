"""The page as a whole: gather, put together, write.

Scripts and styles lie as files in the folder ``static``. The scripts are ordinary modules that
import one another. A page opened from disk may not load modules, so they are joined into one: in an
order in which each comes after what it imports, without their import lines. All of them then share
one scope, in which every name is there once.

Values for the scripts lie in the page as JSON that no name can break out of: inside a script
element a browser looks for nothing but its end tag (and the start of a comment), so it is enough
that no ``<`` is left; ``>`` and ``&`` are escaped as well. Everything beyond ASCII, half surrogate
pairs included, is escaped by the JSON encoder itself.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import tempfile
import warnings
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from marginbn.classifiers import BaseBNClassifier
from marginbn.classifiers.learner import BayesianNetworkLearner
from marginbn.classifiers.validation import check_count
from marginbn.exceptions import InputError
from marginbn.files import PathLike, write_or_rescue, write_text
from marginbn.network.layout import Point, lay_out
from marginbn.network.network import BayesianNetwork
from marginbn.problem.array_types import FloatArray
from marginbn.problem.structure import Structure
from marginbn.report import comparison, contents, sections
from marginbn.report.charts import Markup, element, join
from marginbn.report.effects import Group, effect_values
from marginbn.report.learned import learned_page
from marginbn.report.opening import groups_of, write_header

if TYPE_CHECKING:
    from marginbn.class_model.answers import Answers

FRAME_HEIGHT = 800
"""Pixels of a page that is shown inline."""

INFERENCE = ("factors", "elimination", "inference", "answers", "explain")
"""Scripts that compute posteriors and explain them; they know nothing of a page."""

SCRIPTS = (
    *INFERENCE,
    "format",
    "elements",
    "cards",
    "waterfall",
    "explore",
    "picture",
    "effects",
    "threshold",
    "start",
)
STYLES = ("base", "opening", "explore", "figures", "print")

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./\w+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function |class |const )", re.MULTILINE)
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


@dataclass(frozen=True, eq=False, repr=False)
class HTMLReport:
    """A report as a page: to look at in a notebook, or to save as a file.

    Parameters
    ----------
    html
        The page.
    title
        Its heading.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier, make_report
    >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["stay", "stay", "stay", "leave"]
    >>> report = make_report(NaiveBayesClassifier().fit(X, y), X, y)
    >>> report
    HTMLReport('What predicts class')
    """

    html: str
    title: str

    def save(self, path: PathLike) -> None:
        """Write the page to a file, usually with the suffix ``.html``."""
        rescued = write_or_rescue(path, lambda name: write_text(name, self.html))
        if rescued is not None:
            raise InputError(rescued)

    def show(self, height: int = FRAME_HEIGHT) -> None:
        """Show the page inline in a notebook, in a frame of so many pixels; elsewhere, open it.

        Outside a notebook the page is written to a temporary file and opened in the browser.
        """
        ipython: Any = sys.modules.get("IPython")
        if hasattr(ipython and ipython.get_ipython(), "kernel"):
            ipython.display.display(ipython.display.HTML(self.frame(height)))
            return
        with tempfile.NamedTemporaryFile(
            "w", suffix=".html", delete=False, encoding="utf-8"
        ) as file:
            file.write(self.html)
        webbrowser.open(Path(file.name).as_uri())

    def frame(self, height: int = FRAME_HEIGHT) -> str:
        """The page in a frame of its own, so that its styles and scripts touch nothing else."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="{escape(self.title)}" '
            'sandbox="allow-scripts allow-modals" '
            f'style="width:100%;height:{height}px;border:1px solid #8886;border-radius:8px">'
            "</iframe>"
        )

    def _repr_html_(self) -> str:
        return self.frame()

    def __repr__(self) -> str:
        return f"HTMLReport({self.title!r})"


def make_report(
    classifier: BaseBNClassifier | BayesianNetworkLearner,
    X: Any = None,
    y: Any = None,
    *,
    X_test: Any = None,
    y_test: Any = None,
    title: str | None = None,
    n_folds: int = 0,
    on_fold: comparison.OnFold | None = None,
) -> HTMLReport:
    """A fitted classifier as a page that explains itself and answers questions.

    The page works from disk and needs nothing else. It shows how good the model is, what it is and
    what decides. You can type in a case and see its probabilities with the reasons. Below are the
    effect of each column, quality, arcs and settings. Quality is that of the rows that ``fit`` held
    out, unless there are test rows or folds.

    Parameters
    ----------
    classifier
        Any fitted classifier of this package; or a :class:`BayesianNetworkLearner`, whose page has
        verdict, network and tables and takes a title only.
    X, y
        Labelled rows, for example those learned from. They add notes on the data and densities.
    X_test, y_test
        Rows that the classifier has not seen. If given, the classifier is measured on them, next to
        simpler methods that learn from ``X``.
    title
        Heading of the page.
    n_folds
        Folds of a cross-validation on ``X`` that compares the method with simpler ones; 0 for none.
    on_fold
        Called after each fold with the number of folds done and their total, of all methods.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier, make_report
    >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["stay", "stay", "stay", "leave"]
    >>> report = make_report(NaiveBayesClassifier().fit(X, y), X, y, n_folds=2)
    >>> "How good is it?" in report.html
    True
    """
    if isinstance(classifier, BayesianNetworkLearner):
        if any(given is not None for given in (X, y, X_test, y_test)):
            raise InputError(
                "the report of a BayesianNetworkLearner takes no rows: leave out X and y"
            )
        check_is_fitted(classifier)
        heading = title or "Bayesian network"
        return HTMLReport(learned_page(classifier, heading), heading)
    _check_arguments(classifier, (X, y), (X_test, y_test), n_folds)
    rows = None if X is None else comparison.read_rows(classifier, X, y)
    test = None if X_test is None else comparison.read_rows(classifier, X_test, y_test)
    heading = title or f"What predicts {classifier.network_.names[0]}"
    report, compared = contents.Report(classifier, heading), None
    try:
        if rows is not None and test is not None:
            compared = comparison.compare_on_test(classifier, rows, test)
        elif rows is not None and min(n_folds, rows.n_rows) > 1:
            folds = min(n_folds, rows.n_rows)
            compared = comparison.compare_by_folds(classifier, rows, folds, on_fold)
    except KeyboardInterrupt:
        note = "the comparison with simpler methods was interrupted; the report is without it"
        warnings.warn(note, UserWarning, stacklevel=2)
        report = replace(report, notes=(note,))
    return HTMLReport(render(contents.gather(report, (X, y), rows, compared)), heading)


def _check_arguments(
    classifier: object, rows: tuple[Any, Any], test: tuple[Any, Any], n_folds: int
) -> None:
    if not isinstance(classifier, BaseBNClassifier):
        raise InputError(
            f"classifier must be a fitted classifier of marginbn, got {type(classifier).__name__}"
        )
    check_is_fitted(classifier)
    for names, (X, y) in (("X and y", rows), ("X_test and y_test", test)):
        if (X is None) != (y is None):
            raise InputError(f"{names} must be given together")
    if test[0] is not None and rows[0] is None:
        raise InputError("X_test needs X as well: naive Bayes and TAN learn from it")
    check_count("n_folds", n_folds)
    if n_folds == 1:
        raise InputError("n_folds must be 0 or at least 2, got 1")


def render(report: contents.Report) -> str:
    """The HTML text of a report."""
    parts = {
        "case": ("Try a case", sections.write_case()),
        "effects": ("What each column does", sections.write_effects(report)),
        "quality": ("How good it is", sections.write_quality(report)),
        "network": ("Arcs between columns", sections.write_network(report)),
        "details": ("Details", sections.write_details(report)),
    }
    links = [element("a", title, href=f"#{key}") for key, (title, _) in parts.items()]
    body = join(
        write_header(report),
        element("nav", *links, aria_label="Sections"),
        element("main", *(_section(key, *part) for key, part in parts.items())),
        element("footer", element("p", "Written by marginbn. This file needs no network.")),
    )
    return _document(report, body)


def _section(key: str, title: str, content: Markup) -> Markup:
    heading = element("h2", title, id=f"{key}-title")
    return element("section", heading, content, id=key, aria_labelledby=f"{key}-title")


def _document(report: contents.Report, body: Markup) -> str:
    script = f"\n{join_scripts()}"
    judged = report.judged
    quality = None if judged is None else judged.quality
    groups = [[], *(groups_of(report, i) for i in range(1, report.network.n_variables))]
    columns = report.classifier.coding_.columns
    cuts = [list(c.cuts) if c.kind == "numeric" else None for c in columns]
    values = to_script_json(
        {
            "network": network_values(report.network),
            "model": model_values(report.classifier.answers_),
            "order": report.order,
            "shown": int(report.network.n_classes == 2),  # first: the second of two classes
            "cuts": [None, *cuts],
            "groups": groups,
            "picture": picture_values(report.network, groups),
            "effects": None if report.effects is None else effect_values(report.effects),
            # rows above each threshold, and all rows: of the second class and of the first
            "threshold": None
            if quality is None
            else {"above": quality.above, "totals": [c.n_rows for c in quality.classes[::-1]]},
        }
    )
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy(script)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<link rel="icon" href="data:,">',
        element("title", f"{report.title} - marginbn report"),
        f"<style>\n{join_styles()}</style>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n' + "\n".join(head) + "\n</head>\n<body>\n"
        f"{body}\n"
        f'<script type="application/json" id="values">{values}</script>\n'
        f'<script type="module">{script}</script>\n'
        "</body>\n</html>\n"
    )


def to_script_json(value: object) -> str:
    r"""JSON that is safe between script tags.

    Examples
    --------
    >>> to_script_json(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def model_values(answers: Answers | None) -> dict[str, Any] | None:
    """Trained tables and the network that fills in what is unknown; None for counted tables."""
    if answers is None:
        return None
    from marginbn.class_model.answers import N_DRAWS

    model, buckets = answers.model, answers.buckets
    layout = model.design.layout
    coding = model.design.cells.coding.columns

    def camel(name: str) -> str:
        return re.sub("_(.)", lambda letter: letter[1].upper(), name)

    lists = {camel(name): array.tolist() for name, array in buckets._asdict().items()}
    numbers = {name: to_base64(getattr(buckets, name)) for name in ("tables", "reach")}
    return {
        "draws": N_DRAWS,
        "cuts": [list(c.cuts) if c.kind == "numeric" else None for c in coding],
        "buckets": {**lists, **numbers},
        "layout": {
            "features": layout.features.tolist(),
            "sides": layout.sides.tolist(),
            "cellOf": layout.cell_of.tolist(),
            "cellStart": layout.cell_start.tolist(),
            "rows": layout.shapes[:, 0].tolist(),
            "firstEntry": layout.first_entry.tolist(),
        },
        "offset": model.offset.tolist(),
        "tables": to_base64(model.tables),
    }


def to_base64(numbers: FloatArray) -> str:
    """Numbers bit for bit, in little-endian base64."""
    return base64.b64encode(numbers.astype("<f8").tobytes()).decode()


def network_values(network: BayesianNetwork) -> dict[str, Any]:
    """The network for the page's own inference; tables bit for bit, in little-endian base64."""
    numbers = np.concatenate([table.ravel() for table in network.log_tables])
    return {
        "variables": [{"name": v.name, "states": list(v.states)} for v in network.variables],
        "parents": [list(parents) for parents in network.structure.parents],
        "tables": to_base64(numbers),
    }


def read_asset(name: str) -> str:
    """Text of a file in the folder ``static``."""
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")


def join_scripts(names: Sequence[str] = SCRIPTS) -> str:
    """The scripts as one module."""
    return "\n".join(
        _EXPORT.sub("", _IMPORT.sub("", read_asset(f"{name}.js"))).strip() + "\n" for name in names
    )


def join_styles() -> str:
    """All styles as one sheet, light only in a browser that does not know ``light-dark``."""
    sheet = "\n".join(read_asset(f"{name}.css").strip() + "\n" for name in STYLES)
    pairs = re.findall(r"(--[\w-]+): light-dark\((#\w+),", sheet)
    light = " ".join(f"{name}: {colour};" for name, colour in pairs)
    plain = f":root {{ color-scheme: light; {light} }}"
    return f"{sheet}@supports not (color: light-dark(#000, #fff)) {{ {plain} }}\n"


def content_policy(script: str) -> str:
    """What a browser may do with the page: run this script, show what is in the file, no more."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


# --- where the network is drawn: boxes with room for the probabilities of their states ---

LINES = 5
"""Groups of states that a box shows at most."""

_SMALL_NETWORK = 80
"""Larger networks show names alone."""

_WIDTH, _HEAD, _LINE, _FOOT = 196.0, 26.0, 19.0, 6.0
"""Sizes of a box in pixels, which the style sheet repeats: its width, head, lines and foot."""


def picture_values(network: BayesianNetwork, groups: Sequence[Sequence[Group]]) -> dict[str, Any]:
    """Boxes (left, top, width, height) and arcs of the columns that have arcs between them."""
    between = [[p for p in family if p] for family in network.structure.parents]
    joined = sorted(
        {v for i in range(1, network.n_variables) for v in (*between[i], i) if between[i]}
    )
    place = {v: k for k, v in enumerate(joined)}
    graph = Structure(tuple(tuple(place[p] for p in between[v]) for v in joined))
    most = LINES if len(joined) <= _SMALL_NETWORK else 0
    lines = [min(len(groups[v]), most) for v in joined]
    sizes = [(_WIDTH, _HEAD + _LINE * n + _FOOT) for n in lines]
    if not joined:
        return {"variables": [], "width": 0, "height": 0, "boxes": [], "lines": [], "arcs": []}
    layout = lay_out(graph, [network.names[v] for v in joined], sizes=sizes, has_class=False)
    return {
        "variables": joined,
        "width": round(layout.width, 1),
        "height": round(layout.height, 1),
        "boxes": [
            [round(b.x - b.width / 2, 1), round(b.y - b.height / 2, 1), b.width, b.height]
            for b in layout.boxes
        ],
        "lines": lines,
        "arcs": [
            {"parent": joined[r.parent], "child": joined[r.child], "path": _path(r.curve)}
            for r in layout.routes
        ],
    }


def _path(curve: tuple[Point, ...]) -> str:
    start, *rest = (f"{x:.1f},{y:.1f}" for x, y in curve)
    return f"M{start} C{' '.join(rest)}"
