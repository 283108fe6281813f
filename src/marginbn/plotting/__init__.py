"""Pictures with matplotlib, the extra ``plot``.

Every function takes ``ax`` (axes to draw on, by default those of a new figure), returns the axes
and computes nothing heavy: what is drawn is handed over.
"""

from __future__ import annotations

from marginbn.plotting.graph import plot_network
from marginbn.plotting.quality import plot_calibration, plot_confusion, plot_margins, plot_trace
from marginbn.plotting.tables import plot_explanation, plot_mean_contributions, plot_table

__all__ = [
    "plot_calibration",
    "plot_confusion",
    "plot_explanation",
    "plot_margins",
    "plot_mean_contributions",
    "plot_network",
    "plot_table",
    "plot_trace",
]
