"""What the pictures share: axes, colours, labels.

Colours keep a contrast of at least three to one on white and on black, so that pictures
work with light and dark styles; everything without a colour here follows the style.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError, MissingDependencyError
from marginbn.network.wording import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOR = "#3b82c4"
"""Blue: speaks for the class, right, objective."""

AGAINST = "#d9702b"
"""Orange: speaks for the rival, wrong, bound."""

GREY = "#808690"
INK = "#1a1a1a"
"""Text on a light patch."""

PAPER = "#ffffff"
"""Text on a dark patch."""


def new_axes(
    ax: Axes | None, size: tuple[float, float] = (6.4, 4.0), *, bare: bool = False
) -> Axes:
    """The given axes, or those of a new figure of a size in inches; bare ones fill it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            f'plotting needs matplotlib ({error}): pip install "marginbn[plot]"'
        ) from error
    if ax is not None:
        return ax
    if bare:
        return plt.figure(figsize=size).add_axes((0.0, 0.0, 1.0, 1.0))
    return plt.figure(figsize=size, layout="constrained").add_subplot()


def is_classifier(source: Any) -> bool:
    """Whether it predicts, as scikit-learn's classifiers do once they are fitted."""
    return hasattr(source, "predict") and hasattr(source, "classes_")


def require_rows(function: str, X: Any, y: Any) -> None:
    """Refuse a classifier without the rows and labels to show it on."""
    if X is None or y is None:
        raise InputError(
            f"{function} takes a fitted classifier with X and y, as in {function}(clf, X, y)"
        )


def label(text: str, most: int = 30) -> str:
    """A shortened label in which a dollar sign is no mathematics."""
    return shorten(text, most).replace("$", r"\$")


def write_numbers(
    ax: Axes, shares: NDArray[np.float64], texts: NDArray[Any], fontsize: str | None = None
) -> None:
    """A text in each cell of a heat map of the shares in ``Blues``, dark from about 0.55 up."""
    for (row, column), share in np.ndenumerate(shares):
        colour = PAPER if share > 0.55 else INK
        text = str(texts[row, column])
        ax.text(column, row, text, ha="center", va="center", fontsize=fontsize, color=colour)


def turn_labels(ax: Axes) -> None:
    """Labels below the axes slanted, so that long ones do not overlap."""
    for tick in ax.get_xticklabels():
        tick.set(rotation=40, ha="right", rotation_mode="anchor")
