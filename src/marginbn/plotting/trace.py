"""How objective and bound approached one another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from marginbn.exceptions import InputError
from marginbn.network.wording import percent
from marginbn.plotting.axes import AGAINST, FOR, GREY, new_axes
from marginbn.solvers.result import TracePoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MILLISECOND = 1e-3


def plot_trace(source: Any, *, log_time: bool = False, ax: Axes | None = None) -> Axes:
    """Best objective and proven bound over time; between them lies the optimum.

    Parameters
    ----------
    source
        A fitted classifier, a :class:`~marginbn.SolveResult`, or its trace.
    log_time
        Whether the time axis is logarithmic.
    ax
        Axes to draw on.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from marginbn import TracePoint
    >>> from marginbn.plotting import plot_trace
    >>> plot_trace([TracePoint(0.1, 90.0, 110.0), TracePoint(2.0, 99.0, 100.0)]).get_title()
    'gap 1.00 %'
    >>> plt.close()
    """
    trace = read_trace(source)
    ax = new_axes(ax)
    earliest = _MILLISECOND if log_time else 0.0  # zero has no place on a logarithmic axis
    seconds = [max(point.seconds, earliest) for point in trace]
    objective = [_or_nan(point.objective) for point in trace]
    bound = [_or_nan(point.bound) for point in trace]
    marker = "o" if len(trace) < 25 else None
    style: dict[str, Any] = {"where": "post", "marker": marker, "markersize": 4}
    ax.step(seconds, bound, color=AGAINST, label="bound", **style)
    ax.step(seconds, objective, color=FOR, label="objective", **style)
    ax.fill_between(seconds, objective, bound, step="post", color=GREY, alpha=0.2, linewidth=0)
    if log_time:
        _use_log_time(ax)
    ax.set_xlabel("seconds")
    ax.set_ylabel("nats")
    ax.set_title(f"gap {percent(trace[-1].gap)}", fontsize="medium")
    ax.legend()
    return ax


def read_trace(source: Any) -> Sequence[TracePoint]:
    """The trace of a classifier (``trace_``) or a result (``trace``), or the trace itself.

    It is carried on to the end of the search, where that is known.
    """
    result = getattr(source, "result_", source)
    trace = tuple(getattr(result, "trace", result))
    if not trace or not all(isinstance(point, TracePoint) for point in trace):
        raise InputError(
            "source must be a fitted classifier, a SolveResult or a trace with at least one "
            f"TracePoint, got {type(source).__name__}"
        )
    end = getattr(result, "seconds", 0.0)
    if end > trace[-1].seconds:
        trace = (*trace, TracePoint(end, trace[-1].objective, trace[-1].bound))
    return trace


def _use_log_time(ax: Axes) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def _or_nan(value: float) -> float:
    """Unknown values are left out of the picture."""
    return value if math.isfinite(value) else math.nan
