"""The contents of a report, gathered before a line of HTML is written."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

from marginbn.classifiers import BaseBNClassifier
from marginbn.data.guardrails import drop_of
from marginbn.data.inspection import DataReport, inspect_data
from marginbn.data.labelled import LabelledTable
from marginbn.exceptions import DataWarning
from marginbn.network.network import BayesianNetwork
from marginbn.report.comparison import Comparison, Judged, judge
from marginbn.report.effects import Effect, measure_effects

GIVES_AWAY = "gives the class away"
"""Words of a note on a feature that makes a good score worthless, here and in ``inspect_data``."""

ROUTINE = (
    "left out as identifiers",
    "numbers that do not separate",
    "missing is a state",
    "rare categories merged",
)
"""Beginnings of notes on what is done with every table, which are in the details."""

_TOO_GOOD = (
    "every held-out row is classified right; check that all columns are known before the class is"
)
_LEAK = 0.02
"""A feature gives the class away if it alone makes at most this part of the errors of the most
frequent class.
"""


@dataclass(frozen=True, eq=False)
class Report:
    """Everything on the page.

    Parameters
    ----------
    classifier
        Fitted.
    title
        Heading of the page.
    effects
        What each value makes of the probabilities; None with one class, or where it is too much.
    judged
        The accuracy of the page; None if nothing was measured.
    comparison
        Quality next to other methods, by folds or on test rows; None if not asked for.
    data
        What the rows given hold; None without rows.
    notes
        What could not be done, in sentences.
    """

    classifier: BaseBNClassifier
    title: str
    effects: tuple[Effect, ...] | None = None
    judged: Judged | None = None
    comparison: Comparison | None = None
    data: DataReport | None = None
    notes: tuple[str, ...] = ()

    @property
    def network(self) -> BayesianNetwork:
        """The network of the classifier."""
        return self.classifier.network_

    @property
    def order(self) -> list[int]:
        """Features with a choice of states: those that move the probabilities most come first."""
        features = [i for i in range(1, self.network.n_variables) if self.network.arities[i] > 1]
        if self.effects is None:
            return features
        points = [0.0, *(effect.points for effect in self.effects)]
        return sorted(features, key=lambda i: (-points[i], i))

    def warnings(self) -> list[str]:
        """What makes a good score worthless or needs a look, the most serious first."""
        found = [*self.notes]
        if self.data is not None:
            notes = [note for note in self.data.notes if not note.startswith(ROUTINE)]
            found += sorted(notes, key=lambda note: GIVES_AWAY not in note)
        elif self.effects is not None:
            found += [note for effect in self.effects if (note := self._leak(effect))]
        if self.judged is not None and self.judged.accuracy == 1 and not found:
            found.append(_TOO_GOOD)
        return found

    def _leak(self, effect: Effect) -> str:
        """The note on a feature that determines the class; empty if it does not."""
        joint = effect.joint
        errors, base = 1 - float(joint.max(axis=0).sum()), 1 - float(joint.sum(axis=1).max())
        if base <= 0 or errors > _LEAK * base:
            return ""
        name = self.network.names[effect.variable]
        return (
            f"{name!r} alone {GIVES_AWAY}: right in {100 * (1 - errors):.1f} % of the "
            f"training rows; drop it, {drop_of([name])}, unless it is known before the class is"
        )


def gather(
    report: Report,
    given: tuple[Any, Any],
    rows: LabelledTable | None,
    comparison: Comparison | None,
) -> Report:
    """Add effects and quality, and notes on labelled rows."""
    classifier, settings = report.classifier, report.classifier.table_settings()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # on the page
        return replace(
            report,
            effects=measure_effects(classifier, rows),
            comparison=comparison,
            judged=judge(classifier, comparison, rows),
            data=None
            if rows is None
            else inspect_data(*given, column_kinds=settings.column_kinds, missing=settings.missing),
        )
