"""Gap over time, one curve per record, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.significance import paper_gap

from marginbn.files import replacing


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Write the curves; needs matplotlib."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    for record in records:
        points = [(t, paper_gap(z, bound)) for t, z, bound in record.get("trace", [])]
        shown = [(t, gap) for t, gap in points if 0 < gap < 1e3]
        if shown:
            label = f"{record['instance']} {record['solver']}"
            axes.step(*zip(*shown, strict=True), where="post", label=label)
    axes.set(xlabel="seconds", ylabel="gap, per cent", xscale="log", yscale="log")
    axes.legend(fontsize="x-small")
    with replacing(path, path.suffix) as draft:
        figure.savefig(draft, dpi=150, bbox_inches="tight")
