"""How large the margins of the samples are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from marginbn.exceptions import InputError
from marginbn.network.wording import percent
from marginbn.plotting.axes import AGAINST, FOR, GREY, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_margins(
    log_margins: ArrayLike, *, gamma: float | None = None, bins: int = 40, ax: Axes | None = None
) -> Axes:
    """Histogram of the log margins of the true class, gamma marked.

    Below zero a sample is misclassified; above gamma the soft margin gains nothing more.

    Parameters
    ----------
    log_margins
        One per sample, such as from :func:`marginbn.network.explain.log_margins` with true labels.
    gamma
        Desired log margin, drawn as a line; None for none.
    bins
        Number of bins.
    ax
        Axes to draw on.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from marginbn.plotting import plot_margins
    >>> ax = plot_margins([-0.5, 0.5, 1.5, 3.0], gamma=1.0)
    >>> ax.get_xlabel()
    'log margin of the true class (nats)'
    >>> plt.close()
    """
    margins = np.asarray(log_margins, dtype=np.float64).ravel()
    if not len(margins) or not np.isfinite(margins).all():
        raise InputError("log_margins must hold at least one number, and only finite ones")
    ax = new_axes(ax)
    edges = _edges(margins, bins)
    for part, colour, name in (
        (margins[margins < 0], AGAINST, "wrong"),
        (margins[margins >= 0], FOR, "right"),
    ):
        share = percent(len(part) / len(margins))
        ax.hist(part, bins=edges, color=colour, label=f"{name}: {share}")
    if gamma is not None:
        reached = percent(float((margins >= gamma).mean()))
        text = f"gamma = {gamma:.4g}, reached by {reached}"
        ax.axvline(gamma, color=GREY, linestyle="--", linewidth=1.6, label=text)
    ax.set_xlabel("log margin of the true class (nats)")
    ax.set_ylabel("samples")
    ax.legend()
    return ax


def _edges(margins: np.ndarray[tuple[int, ...], np.dtype[np.float64]], bins: int) -> list[float]:
    """Bin edges, one of which is zero, so that no bar is half right and half wrong."""
    low, high = min(float(margins.min()), 0.0), max(float(margins.max()), 0.0)
    width = (high - low) / bins or 1.0
    first, last = int(np.floor(low / width)), int(np.ceil(high / width))
    return [width * step for step in range(first, max(last, first + 1) + 1)]
