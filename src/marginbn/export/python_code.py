"""A classifier as a Python file that needs nothing but Python.

The file holds the tables of a :class:`~marginbn.export.score_model.ScoreModel` as literals and two
functions: ``predict_proba(row)`` gives a dictionary of probabilities by class, ``predict(row)`` the
class to predict. A row is a mapping from column names to values, such as a dictionary; None, NaN
and, for numbers, the empty text are missing.
"""

from __future__ import annotations

from pprint import pformat

from marginbn.export.score_model import Feature, Member, ScoreModel

_FUNCTIONS = '''

def predict_proba(row):
    """Probability of each class; row maps column names to values."""
    codes = {i: _code(row, *FEATURES[i]) for i in FEATURES}
    total = [0.0] * len(CLASSES)
    for weight, bias, terms, doubt, background in MEMBERS:
        scores = [0.0, *bias]
        for members, groups, strides, table in terms:
            cell = 0
            for i, group, stride in zip(members, groups, strides):
                cell += group[codes[i]] * stride
            for c, points in enumerate(table[cell], start=1):
                scores[c] += points
        largest = max(scores)
        exps = [math.exp(score - largest) for score in scores]
        norm = sum(exps)
        for c, value in enumerate(exps):
            total[c] += weight * ((1.0 - doubt) * value / norm + doubt * background[c])
    return dict(zip(CLASSES, total))


def predict(row):
    """The most probable class, or with COSTS that of least expected cost; ties go to the first."""
    probabilities = predict_proba(row)
    if COSTS is None:
        return max(CLASSES, key=probabilities.get)
    shares = [probabilities[label] for label in CLASSES]
    expected = {
        label: sum(share * costs[d] for share, costs in zip(shares, COSTS))
        for d, label in enumerate(CLASSES)
    }
    return min(CLASSES, key=expected.get)


def _code(row, name, cuts, categories, missing_code, unseen_code):
    value = row.get(name)
    is_missing = value is None or value != value or (value == "" and "" not in (categories or {""}))
    if cuts is not None and value == "":
        is_missing = True
    if is_missing:
        if missing_code is None:
            raise ValueError(f"column {name!r} must have a value, got {value!r}")
        return missing_code
    if cuts is not None:
        return bisect_left(cuts, float(value))
    label = str(value)
    if label not in categories and isinstance(value, float) and value.is_integer():
        label = str(int(value))
    code = categories.get(label, unseen_code)
    if code is None:
        raise ValueError(f"column {name!r} has the unknown category {value!r}")
    return code
'''


def to_python(model: ScoreModel) -> str:
    """Text of the file."""
    members = [_member(member, model.n_classes) for member in model.members]
    features = {i: _feature(model.features[i]) for i in model.used}
    return "\n".join(
        [
            f'"""P({_one_line(model.target)} | row), exported by marginbn; '
            'call predict_proba(row) or predict(row)."""',
            *(f"# {ascii(note)[1:-1]}" for note in model.notes),
            "",
            "import math",
            "from bisect import bisect_left",
            "",
            f"CLASSES = {model.classes!r}",
            "# cost of each decision, a row per true class; None: the most probable class",
            f"COSTS = {None if model.costs is None else _literal(model.costs.tolist())}",
            "# index: (column, cuts or None, codes of categories or None, code of a missing value, "
            "code of an unseen category)",
            f"FEATURES = {_literal(features)}",
            "# (weight, bias, terms, doubt, background); a term is (columns, rows of their codes, "
            "strides, table)",
            f"MEMBERS = {_literal(members)}",
            _FUNCTIONS,
        ]
    )


def _one_line(text: str) -> str:
    return ascii(text)[1:-1].replace('"', "'").replace("\\", "/")


def _literal(value: object) -> str:
    return pformat(value, width=100, compact=True, sort_dicts=False)


def _feature(feature: Feature) -> tuple[object, ...]:
    coding = feature.coding
    if coding.kind == "numeric":
        return (coding.name, list(coding.cuts), None, feature.missing_code, None)
    categories = {str(category): code for category, code in feature.category_codes.items()}
    return (coding.name, None, categories, feature.missing_code, feature.unseen_code)


def _member(member: Member, n_classes: int) -> tuple[object, ...]:
    terms = []
    for term in member.terms:
        strides: list[int] = []
        stride = 1
        for size in reversed(term.table.shape[:-1]):
            strides.insert(0, stride)
            stride *= size
        rows = [tuple(row) for row in term.table.reshape(stride, -1).tolist()]
        groups = [tuple(group.tolist()) for group in term.groups]
        terms.append((term.members, groups, strides, rows))
    background = [0.0] * n_classes if member.background is None else member.background.tolist()
    return (float(member.weight), member.bias.tolist(), terms, float(member.doubt), background)
