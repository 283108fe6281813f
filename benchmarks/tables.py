"""Tables from records, as text."""

from __future__ import annotations

import math
from typing import Any

Record = dict[str, Any]
OURS = ("branch_bound", "auto", "branch_cut")


def overview(records: list[Record]) -> str:
    """One line per record."""
    lines = [
        f"{'instance':32s} {'solver':13s} {'jobs':>4s} {'status':>11s} {'gap %':>9s} "
        f"{'seconds':>8s} {'first':>6s} {'nodes':>8s} {'nodes/s':>8s} {'MB':>6s}  objective"
    ]
    for r in sorted(records, key=lambda r: (r["instance"], r["solver"], r["n_jobs"])):
        if r["status"] == "error":
            lines.append(f"{r['instance']:32s} {r['solver']:13s} error: {r['error']}")
            continue
        lines.append(
            f"{r['instance']:32s} {r['solver']:13s} {r['n_jobs']:4d} {r['status']:>11s} "
            f"{r['gap_percent']:9.4f} {r['seconds']:8.2f} {r['first_answer_seconds']:6.2f} "
            f"{r['nodes']:8d} {r['nodes'] / max(r['seconds'], 1e-9):8.0f} "
            f"{r['peak_megabytes']:6.0f}  {r['objective']:.4f}"
        )
    return "\n".join(lines)


def ratios(records: list[Record]) -> str:
    """Time of each baseline over ours where the same instance and limit were run."""
    lines = []
    factors: dict[str, list[float]] = {}
    ours = {(r["instance"], r["limit"]): r for r in records if r["solver"] in OURS}
    for r in records:
        base = ours.get((r["instance"], r["limit"]))
        if r["solver"] in OURS or base is None or "error" in (r["status"], base["status"]):
            continue
        if r["limit"] >= 300:  # time to proof; an unfinished run counts as its limit
            taken = r["seconds"] if r["status"] == "optimal" else r["limit"]
            factor = taken / base["seconds"]
            factors.setdefault(r["solver"], []).append(factor)
            text = f"{taken:8.1f} s against {base['seconds']:7.2f} s   {factor:9.1f} x"
        else:
            text = f"gap {r['gap_percent']:.3f} % against {base['gap_percent']:.3f} %"
        lines.append(f"{r['instance']:32s} {r['solver']:8s} {text}")
    for solver, values in factors.items():
        mean = math.exp(sum(map(math.log, values)) / len(values))
        lines.append(f"geometric mean over {len(values)} instances, {solver}: {mean:.1f} x")
    return "\n".join(lines)


def agreement(records: list[Record]) -> str:
    """Largest difference between proved optima of one instance, whoever proved them."""
    proved: dict[str, list[float]] = {}
    for r in records:
        if r["status"] == "optimal":
            proved.setdefault(r["instance"], []).append(r["objective"])
    twice = {name: values for name, values in proved.items() if len(values) > 1}
    if not twice:
        return ""
    spread = {n: (max(v) - min(v)) / max(1.0, abs(max(v))) for n, v in twice.items()}
    worst = max(spread, key=lambda name: spread[name])
    return (
        f"{len(twice)} instances proved more than once; optima differ by at most "
        f"{spread[worst]:.1e} of the value ({worst})"
    )
