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
import tempfile
import warnings
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from marginbn.classifiers import BaseBNClassifier
from marginbn.classifiers.learner import BayesianNetworkLearner
from marginbn.classifiers.validation import check_count, check_positive
from marginbn.data.labelled import LabelledTable
from marginbn.exceptions import InputError
from marginbn.files import PathLike, write_or_rescue, write_text
from marginbn.network.layout import Point, lay_out
from marginbn.network.network import BayesianNetwork
from marginbn.notebook import in_notebook, show_html
from marginbn.report import comparison, contents, judgement, sections
from marginbn.report.charts import Markup, element, join
from marginbn.report.effects import effect_values, measure_effects
from marginbn.report.learned import learned_page
from marginbn.report.opening import write_header

if TYPE_CHECKING:
    from marginbn.class_model.answers import Answers

DEFAULT_FOLDS = 5
DEFAULT_FOLD_TIME = 10.0
"""Seconds for the structure search in a fold, unless the classifier had less."""

FRAME_HEIGHT = 800
"""Pixels of a page that is shown inline."""

INFERENCE = ("factors", "elimination", "inference", "answers", "explain")
"""Scripts that compute posteriors and explain them; they know nothing of a page."""

SCRIPTS = (
    *INFERENCE,
    "format",
    "elements",
    "focus",
    "strip",
    "cards",
    "classes",
    "case",
    "explore",
    "tables",
    "viewport",
    "picture",
    "effects",
    "start",
)
STYLES = ("base", "opening", "parts", "figures", "explore", "picture", "print")

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
    >>> report = make_report(NaiveBayesClassifier().fit(X, y), X, y, n_folds=0)
    >>> report
    HTMLReport('A classifier of class')
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
        if in_notebook():
            show_html(self.frame(height))
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


def write_report(
    classifier: BaseBNClassifier | BayesianNetworkLearner,
    path: PathLike,
    X: Any = None,
    y: Any = None,
    *,
    X_test: Any = None,
    y_test: Any = None,
    title: str | None = None,
    n_folds: int = DEFAULT_FOLDS,
    fold_time_limit: float = DEFAULT_FOLD_TIME,
    on_fold: comparison.OnFold | None = None,
) -> None:
    """Write a fitted classifier as one HTML file that explains itself and answers questions.

    The same as ``make_report(classifier, X, y, ...).save(path)``, see :func:`make_report`.

    Parameters
    ----------
    classifier
        Any fitted classifier of this package.
    path
        The file, usually with the suffix ``.html``.
    X, y, X_test, y_test, title, n_folds, fold_time_limit, on_fold
        As of :func:`make_report`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from marginbn import NaiveBayesClassifier
    >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["stay", "stay", "stay", "leave"]
    >>> clf = NaiveBayesClassifier().fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     write_report(clf, Path(folder) / "report.html", X, y, n_folds=2)
    ...     (Path(folder) / "report.html").stat().st_size < 2_000_000
    True
    """
    make_report(
        classifier,
        X,
        y,
        X_test=X_test,
        y_test=y_test,
        title=title,
        n_folds=n_folds,
        fold_time_limit=fold_time_limit,
        on_fold=on_fold,
    ).save(path)


def make_report(
    classifier: BaseBNClassifier | BayesianNetworkLearner,
    X: Any = None,
    y: Any = None,
    *,
    X_test: Any = None,
    y_test: Any = None,
    title: str | None = None,
    n_folds: int = DEFAULT_FOLDS,
    fold_time_limit: float = DEFAULT_FOLD_TIME,
    on_fold: comparison.OnFold | None = None,
) -> HTMLReport:
    """A fitted classifier as a page that explains itself and answers questions.

    The page works from disk and needs nothing else. First how good classifier and search are, what
    decides and how sure that is; then exact posteriors of all variables for anything one types or
    clicks, with the reasons for one case to print; the network, what each feature does, conditional
    tables, settings. With labelled rows it also has all measures next to naive Bayes, TAN, logistic
    regression and the most frequent class, calibration and a look at the data.

    Parameters
    ----------
    classifier
        Any fitted classifier of this package; or a :class:`BayesianNetworkLearner`, whose page has
        verdict, network and tables and takes a title only.
    X, y
        Labelled rows, for example those learned from. The accuracy is cross-validated on them,
        everything learned again in each fold.
    X_test, y_test
        Rows that the classifier has not seen. If given, the classifier is measured on them as it
        is, instead of by cross-validation, and the others learn from ``X``.
    title
        Heading of the page.
    n_folds
        Number of folds; 0 measures nothing on unseen rows, and the page says so.
    fold_time_limit
        Seconds for the structure search in a fold, if the classifier's own limit is not less.
    on_fold
        Called with the name of the method and its score after each fold.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier, make_report
    >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["stay", "stay", "stay", "leave"]
    >>> report = make_report(NaiveBayesClassifier().fit(X, y), X, y, n_folds=2)
    >>> "How good is the classifier?" in report.html
    True
    """
    if isinstance(classifier, BayesianNetworkLearner):
        return _learner_report(classifier, (X, y, X_test, y_test), title)
    _check_arguments(classifier, (X, y), (X_test, y_test), n_folds, fold_time_limit)
    rows = None if X is None else comparison.read_rows(classifier, X, y)
    test = None if X_test is None else comparison.read_rows(classifier, X_test, y_test)
    report = start_report(classifier, title)
    if rows is not None:
        report = contents.gather_rows(report, X, y, rows, test)

        def compare(report: contents.Report) -> contents.Report:
            return replace(
                report,
                comparison=_compare(classifier, rows, test, n_folds, fold_time_limit, on_fold),
            )

        report = _unless_interrupted(report, compare)
    return HTMLReport(render(report), report.title)


def _learner_report(
    learner: BayesianNetworkLearner, rows: tuple[Any, ...], title: str | None
) -> HTMLReport:
    """The page of a network without a class, which has no measures on rows."""
    if any(given is not None for given in rows):
        raise InputError("the report of a BayesianNetworkLearner takes no rows: leave out X and y")
    check_is_fitted(learner)
    heading = title or "Bayesian network"
    return HTMLReport(learned_page(learner, heading), heading)


def _compare(
    classifier: BaseBNClassifier,
    rows: LabelledTable,
    test: LabelledTable | None,
    n_folds: int,
    fold_time_limit: float,
    on_fold: comparison.OnFold | None,
) -> comparison.Comparison | None:
    if test is not None:
        return comparison.compare_on_test(classifier, rows, test)
    folds = min(n_folds, rows.n_rows)
    if folds < 2:
        return None
    return comparison.compare_by_folds(classifier, rows, folds, fold_time_limit, on_fold)


def _unless_interrupted(
    report: contents.Report, add: Callable[[contents.Report], contents.Report]
) -> contents.Report:
    """Add something; Ctrl-C leaves it out, and the page says so."""
    try:
        return add(report)
    except KeyboardInterrupt:
        warnings.warn(
            "measuring the accuracy was interrupted; the report is written without it",
            UserWarning,
            stacklevel=4,
        )
        note = "Measuring the accuracy was interrupted, so it is missing."
        return replace(report, notes=(*report.notes, note))


def _check_arguments(
    classifier: object,
    rows: tuple[Any, Any],
    test: tuple[Any, Any],
    n_folds: int,
    fold_time_limit: float,
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
    check_positive("fold_time_limit", fold_time_limit)


def start_report(classifier: BaseBNClassifier, title: str | None = None) -> contents.Report:
    """What can be said without rows."""
    heading = title or f"A classifier of {classifier.network_.names[0]}"
    information = contents.class_information(classifier.network_)
    return contents.Report(classifier, heading, information, measure_effects(classifier))


def render(report: contents.Report) -> str:
    """The HTML text of a report."""
    parts = {
        "ask": ("Ask this network", sections.write_explore(report)),
        "network": ("The network", sections.write_network(report)),
        "effects": ("What each feature does", sections.write_effects(report)),
        "contributions": ("What decides", sections.write_contributions(report)),
        "quality": ("How good it is", judgement.write_quality(report)),
        "data": ("The data", sections.write_data(report)),
        "tables": ("Conditional tables", sections.write_tables()),
        "bound": ("How the bound closed", sections.write_bound(report)),
        "settings": ("Settings", sections.write_settings(report)),
    }
    body = join(
        write_header(report),
        sections.write_navigation([(key, title) for key, (title, _) in parts.items()]),
        element("main", *(_section(key, *part) for key, part in parts.items())),
        element("footer", element("p", "Written by marginbn. This file needs no network.")),
    )
    return _document(report, body)


def _section(key: str, title: str, content: Markup) -> Markup:
    heading = element("h2", title, id=f"{key}-title")
    return element("section", heading, content, id=key, aria_labelledby=f"{key}-title")


def _document(report: contents.Report, body: Markup) -> str:
    script = f"\n{join_scripts()}"
    values = to_script_json(
        {
            "title": report.title,
            "network": network_values(report.network),
            "model": model_values(report.classifier.answers_),
            "order": report.order,
            "samples": _samples(report),
            "cuts": _cuts(report.classifier),
            "picture": picture_values(report.network),
            "effects": None if report.effects is None else effect_values(report.effects),
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


def _cuts(classifier: BaseBNClassifier) -> list[list[float] | None]:
    """Where the bins of each variable end, so that numbers can be typed; None of categories."""
    numeric = (list(c.cuts) if c.kind == "numeric" else None for c in classifier.coding_.columns)
    return [None, *numeric]


def _samples(report: contents.Report) -> list[list[list[int]]]:
    """Evidence of the rows shown, as pairs of variable and state."""
    shown = () if report.contributions is None else report.contributions.closest
    return [sections.evidence_of(explanation, report.network) for explanation in shown]


def to_script_json(value: object) -> str:
    r"""JSON that may stand between script tags.

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
    lists = {to_camel(name): array.tolist() for name, array in buckets._asdict().items()}
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


def to_camel(name: str) -> str:
    """A name as scripts write it.

    Examples
    --------
    >>> to_camel("cell_start")
    'cellStart'
    """
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def to_base64(numbers: NDArray[np.float64]) -> str:
    """Numbers bit for bit, in little-endian base64."""
    return base64.b64encode(numbers.astype("<f8").tobytes()).decode()


def network_values(network: BayesianNetwork) -> dict[str, Any]:
    """The network for the page's own inference; tables bit for bit, in little-endian base64."""
    numbers = np.concatenate([table.ravel() for table in network.log_tables])
    return {
        "variables": [{"name": v.name, "states": list(v.states)} for v in network.variables],
        "parents": [list(parents) for parents in network.structure.parents],
        "tables": base64.b64encode(numbers.astype("<f8").tobytes()).decode("ascii"),
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
    """All styles as one sheet."""
    return "\n".join(read_asset(f"{name}.css").strip() + "\n" for name in STYLES)


def content_policy(script: str) -> str:
    """What a browser may do with the page: run this script, show what is in the file, no more."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


# --- where the network is drawn: boxes with room for the probabilities of their states ---

LINES = 5
"""States that a box shows; of more the most probable ones."""

_SMALL_NETWORK = 80
"""Larger networks show the most probable state alone."""

_WIDTH, _HEAD, _LINE, _FOOT = 196.0, 26.0, 19.0, 6.0
"""Sizes of a box in pixels, which the style sheet repeats: its width, head, lines and foot."""


def lines_of(network: BayesianNetwork) -> list[int]:
    """States that each box shows."""
    most = LINES if network.n_variables <= _SMALL_NETWORK else 1
    return [min(arity, most) for arity in network.arities]


def picture_values(network: BayesianNetwork) -> dict[str, Any]:
    """Places of boxes (left, top, width, height) and arcs for the scripts of the page."""
    lines = lines_of(network)
    sizes = [(_WIDTH, _HEAD + _LINE * n + _FOOT) for n in lines]
    layout = lay_out(network.structure, network.names, sizes=sizes)
    return {
        "width": round(layout.width, 1),
        "height": round(layout.height, 1),
        "separator": layout.separator,
        "boxes": [
            [round(b.x - b.width / 2, 1), round(b.y - b.height / 2, 1), b.width, b.height]
            for b in layout.boxes
        ],
        "lines": lines,
        "arcs": [
            {
                "parent": r.parent,
                "child": r.child,
                "path": _path(r.curve),
                "faint": r.faint,
            }
            for r in sorted(layout.routes, key=lambda r: not r.faint)
        ],
    }


def _path(curve: tuple[Point, ...]) -> str:
    start, *rest = (f"{x:.1f},{y:.1f}" for x, y in curve)
    return f"M{start} C{' '.join(rest)}"
