"""The page of benchmarks, docs/benchmarks.rst, from records: nothing is measured here.

Each section takes the records of one file in the folder of results and makes tables of them. A
section whose file is not there says so, with the command that makes it.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.origin import mixture

from benchmarks.run import read_records
from marginbn.files import write_text

Record = dict[str, Any]
HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "benchmarks.rst"
PUBLISHED = HERE / "published_times.toml"
OURS = ("branch_bound", "branch_cut", "auto", "dp")
ABSENT = "—"


@dataclass(frozen=True)
class Section:
    """A heading, the file of its records, the command that makes them, and what to show."""

    title: str
    file: str
    command: str
    about: str
    show: Callable[[list[Record]], list[str]]

    def lines(self, folder: Path) -> list[str]:
        """The section in reStructuredText."""
        records = [r for r in read_records(folder / self.file) if r.get("status") != "error"]
        head = [self.title, "-" * len(self.title), "", self.about, "", f"``{self.command}``", ""]
        if not records:
            return [*head, "Not measured yet.", ""]
        origins = [r["origin"] for r in records if "origin" in r]
        told = [f"*{line}*" for line in mixture(origins)] if origins else []
        return [*head, *self.show(records), *_paragraphs(told)]


def write_page(folder: Path = RESULTS, page: Path = PAGE) -> str:
    """Write the page; returns its text."""
    title = "Benchmarks"
    lines = [
        title,
        "=" * len(title),
        "",
        "This page is made from records by ``python -m benchmarks page``; the records are in "
        "``benchmarks/results``, and every table names the command that makes them. Compare "
        "seconds only within one table: one machine, one run. Accuracy and log loss are in "
        ":doc:`reproduction`.",
        "",
    ]
    for section in SECTIONS:
        lines += section.lines(folder)
    text = "\n".join(lines).rstrip() + "\n"
    write_text(page, text)
    return text


def _paragraphs(lines: Iterable[str]) -> list[str]:
    return [part for line in lines for part in (line, "")]


def list_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table that docutils reads whatever is in its cells."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (header, *rows):
        lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
    return [*lines, ""]


def number(value: float | None, digits: int = 2) -> str:
    """Three significant digits at least, none too many."""
    if value is None:
        return ABSENT
    return f"{value:.{digits}f}" if abs(value) < 100 else f"{value:.0f}"


# --- the engine against formulation (19) ---


def against_formulation(records: list[Record]) -> list[str]:
    """Seconds to the proof, or the gap at the limit, and how many times ours."""
    return [*_by_solver(records), *_factors(records)]


def _by_solver(records: list[Record]) -> list[str]:
    solvers = sorted({r["solver"] for r in records}, key=lambda s: (s not in OURS, s))
    instances = dict.fromkeys((r["instance"], r["limit"]) for r in records)
    found = {(r["instance"], r["limit"], r["solver"]): r for r in records}
    rows = [
        [name, f"{limit:g}", *(ending(found.get((name, limit, s))) for s in solvers)]
        for name, limit in instances
    ]
    return list_table(["problem", "limit, s", *solvers], rows)


def ending(record: Record | None) -> str:
    """Seconds to the proof, or the gap and the seconds it was left after."""
    if record is None:
        return ABSENT
    if record["status"] == "optimal":
        return f"{number(record['seconds'])} s"
    gap = record.get("gap_percent")
    shown = "no bound" if gap is None or not math.isfinite(gap) else f"{gap:.2f} % left"
    return f"{shown} after {number(record['seconds'], 0)} s"


def _factors(records: list[Record]) -> list[str]:
    """Geometric mean of their seconds over ours, where ours ended with a proof."""
    ours = {
        (r["instance"], r["limit"]): r["seconds"]
        for r in records
        if r["solver"] in OURS and r["status"] == "optimal"
    }
    lines = []
    for solver in sorted({r["solver"] for r in records} - set(OURS)):
        pairs = [
            (r["seconds"] if r["status"] == "optimal" else r["limit"], ours[key])
            for r in records
            if r["solver"] == solver and (key := (r["instance"], r["limit"])) in ours
        ]
        if pairs:
            mean = math.exp(sum(math.log(theirs / own) for theirs, own in pairs) / len(pairs))
            lines.append(
                f"{solver}: {number(mean, 1)} times our seconds (geometric mean of {len(pairs)} "
                "problems; one that did not finish counts as its limit)."
            )
    return _paragraphs(lines)


# --- the hard problems of table 1, and memory ---


def hard_problems(records: list[Record]) -> list[str]:
    """Gap, first answer, nodes and peak memory."""
    rows = [
        [
            r["instance"],
            str(r["n_jobs"]),
            ending(r),
            number(r.get("first_answer_seconds")),
            str(r["nodes"]),
            number(r.get("peak_megabytes"), 0),
        ]
        for r in sorted(records, key=lambda r: (r["instance"], r["limit"], r["n_jobs"]))
    ]
    header = ["problem", "cores", "ending", "first answer, s", "nodes", "peak MB"]
    return list_table(header, rows)


def two_workers(records: list[Record]) -> list[str]:
    """Nodes per second of one worker and of two."""
    rates = {(r["instance"], r["n_jobs"]): r["nodes"] / r["seconds"] for r in records}
    rows = [
        [name, number(rates[name, 1], 0), number(rate, 0), number(rate / rates[name, 1])]
        for (name, n_jobs), rate in rates.items()
        if n_jobs == 2 and (name, 1) in rates
    ]
    return list_table(["problem", "one worker, nodes/s", "two, nodes/s", "ratio"], rows)


# --- general networks ---


def general_networks(records: list[Record]) -> list[str]:
    """Searches and scores: ours, what was measured beside it, and what others published."""
    published = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))
    searches = [r for r in records if "solver" in r]
    scorings = [r for r in records if "table" in r]
    networks = [r for r in records if "network_of" in r]
    lines = _searches(searches, published) if searches else []
    if scorings:
        lines += ["Scores of all parent sets that can matter, from the table:", ""]
        lines += _scorings(scorings, published)
    if networks:
        title = "Best networks from the table, scores included; certificates and who accepts them:"
        lines += [title, ""]
        lines += _networks(networks)
    return [*lines, *_paragraphs(published["notes"])]


def _searches(records: list[Record], published: dict[str, Any]) -> list[str]:
    found = {(r["instance"], r["solver"]): r for r in records}
    solvers = sorted({r["solver"] for r in records}, key=lambda s: (s not in OURS, s))
    rows = []
    for r in {r["instance"]: r for r in records}.values():
        name = r["instance"]
        best = max(s["objective"] for s in records if s["instance"] == name)
        told = [published[part].get(name, ABSENT) for part in ("measured", "times")]
        endings = [ending(found.get((name, s))) for s in solvers]
        size = [str(r["variables"]), str(r["parent_sets"])]
        rows.append([name, *size, f"{best:.6f}", *endings, *told])
    header = ["instance", "variables", "parent sets", "best score", *solvers]
    return list_table([*header, "GOBNILP here", "published"], rows)


def _networks(records: list[Record]) -> list[str]:
    rows = []
    for r in records:
        parents = "any number of" if r["max_parents"] is None else f"up to {r['max_parents']}"
        name = f"{r['network_of']}, {r['score'].upper()}, {parents} parents"
        proof = [ABSENT, ABSENT]
        if "accepted" in r:
            checks = " and ".join(f"{number(s)} s" for s in r["checker_seconds"])
            verdict = "both accept" if all(r["accepted"]) else "refused"
            proof = [f"{number(r['certificate_seconds'])} s", f"{verdict}, {checks}"]
        size = [str(r["variables"]), str(r["parent_sets"]), f"{r['objective']:.6f}"]
        rows.append([name, *size, f"{number(r['scoring_seconds'])} s", ending(r), *proof])
    header = ["table", "variables", "kept", "best score", "scores", "in all", "certificate"]
    return list_table([*header, "checkers"], rows)


def _scorings(records: list[Record], published: dict[str, Any]) -> list[str]:
    rows = []
    for r in records:
        parents = "any number of" if r["max_parents"] is None else f"up to {r['max_parents']}"
        name = f"{r['table']}, {r['score'].upper()}, {parents} parents"
        theirs = published["scoring"].get(r["key"].removesuffix(" scores"), ABSENT)
        size = [str(r[part]) for part in ("rows", "variables", "parent_sets")]
        rows.append([name, *size, f"{number(r['seconds'])} s", theirs])
    return list_table(["table", "rows", "variables", "kept", "seconds", "GOBNILP here"], rows)


# --- classifiers ---


def classifiers(records: list[Record]) -> list[str]:
    """Fit and predict beside other packages, one table per task."""
    lines: list[str] = []
    for task, rows, features in dict.fromkeys(
        (r["task"], r["rows"], r["features"]) for r in records
    ):
        group = [
            r for r in records if (r["task"], r["rows"], r["features"]) == (task, rows, features)
        ]
        base = next((r for r in group if r["contender"].startswith("marginbn")), None)
        table = []
        for r in group:
            micros = 1e6 * r["predict_cpu"] / r["predicted_rows"]
            ratios = [ABSENT, ABSENT]
            if base is not None and r is not base:
                own = 1e6 * base["predict_cpu"] / base["predicted_rows"]
                ratios = [
                    number(r["fit_cpu"] / max(base["fit_cpu"], 1e-9), 1),
                    number(micros / max(own, 1e-9), 1),
                ]
            table.append(
                [
                    r["contender"],
                    number(r["fit_cpu"], 3),
                    ratios[0],
                    number(micros, 2),
                    ratios[1],
                    number(r["peak_megabytes"], 0),
                ]
            )
        lines += [f"{task}, {rows} rows and {features} features:", ""]
        header = ["", "fit, s", "times ours", "predict, µs a row", "times ours", "peak MB"]
        lines += list_table(header, table)
    return lines


# --- growth ---


def growth(records: list[Record]) -> list[str]:
    """Processor seconds and peak memory by size, one table per axis, with the exponents."""
    lines: list[str] = []
    for axis in dict.fromkeys(r["axis"] for r in records):
        group = [r for r in records if r["axis"] == axis]
        sizes = sorted({r[axis] for r in group})
        rows = []
        for contender in dict.fromkeys(r["contender"] for r in group):
            own = {r[axis]: r for r in group if r["contender"] == contender and "error" not in r}
            slope = exponent([(n, r["processor"]) for n, r in sorted(own.items())])
            rows.append([contender, *(_grown(own.get(n)) for n in sizes), number(slope)])
        lines += [f"By {axis}: processor seconds of fit (peak MB).", ""]
        lines += list_table(["", *map(str, sizes), "exponent"], rows)
    return lines + _phases(records)


def _phases(records: list[Record]) -> list[str]:
    """Where the time of our largest fits along each axis goes."""
    largest: dict[tuple[str, str], Record] = {}
    for r in sorted((r for r in records if r.get("phases")), key=lambda r: r[r["axis"]]):
        largest[r["axis"], r["contender"]] = r
    names = ["read", "count", "search", "parameters"]
    rows = [
        [
            f"{r['contender']}, {r['rows']} x {r['features']} x {r['classes']}",
            *(number(r["phases"][name]) for name in names),
            ABSENT if r["gap"] is None else number(100 * r["gap"], 3),
        ]
        for r in largest.values()
    ]
    if not rows:
        return []
    header = ["", "read and encode", "count", "search", "parameters", "gap, %"]
    return ["Processor seconds by phase, largest sizes:", "", *list_table(header, rows)]


def _grown(record: Record | None) -> str:
    if record is None:
        return ABSENT
    return f"{number(record['processor'])} ({number(record['peak'], 0)})"


def exponent(points: list[tuple[float, float]]) -> float | None:
    """Slope of seconds over size on logarithmic scales, between the two largest sizes."""
    if len(points) < 2:
        return None
    (n, before), (m, after) = points[-2:]
    return math.log(max(after, 1e-3) / max(before, 1e-3)) / math.log(m / n)


# --- limits ---


def time_limits(records: list[Record]) -> list[str]:
    """What a fit takes beyond its limit, and when it knows something."""
    rows = [
        [
            _shape(r["key"]),
            number(r["limit"], 1),
            number(r["seconds"]),
            ABSENT if r["first_bound"] is None else number(r["first_bound"]),
            number(100 * r["gap"], 3),
            number(1000 * r["peak"], 0),
        ]
        for r in records
        if "error" not in r
    ]
    header = ["rows x features x classes, parents", "limit", "fit, s", "first bound, s", "gap, %"]
    return list_table([*header, "peak MB"], rows)


def memory_limits(records: list[Record]) -> list[str]:
    """The most that a fit held, or what was refused."""
    rows = [
        [
            _shape(r["key"]),
            number(1000 * r["gigabytes"], 0),
            "refused" if r["refusal"] else number(100 * r["gap"], 2),
        ]
        for r in records
        if "error" not in r
    ]
    return list_table(["rows x features x classes, parents", "MB", "gap after 10 s, %"], rows)


def _shape(key: str) -> str:
    _, shape, parents, _ = key.split("-")
    return f"{shape.replace('x', ' x ')}, {parents}"


def long_tables(records: list[Record]) -> list[str]:
    """Fits from files that are read in pieces."""
    rows = [
        [
            r["key"].replace("-", ", ").replace("x", " x "),
            number(r["processor"], 1),
            number(1000 * r["peak"], 0),
            ABSENT if r["gap"] is None else number(100 * r["gap"], 4),
        ]
        for r in records
    ]
    return list_table(["rows x features", "processor seconds", "peak MB", "gap, %"], rows)


# --- clusters ---


def clusters(records: list[Record]) -> list[str]:
    """Nodes per second by workers, and proofs alone, on two workers and with one of them killed."""
    rates = [
        [
            r["instance"],
            str(r["n_workers"]),
            number(r["nodes_per_second"], 0),
            number(r["nodes_per_processor_second"], 0),
            number(100 * r["busy"], 0),
        ]
        for r in records
        if "n_workers" in r
    ]
    ways = ("alone", "two", "killed")
    proofs = [
        [
            r["instance"],
            *(f"{r[way]['nodes']} ({number(r[way]['seconds'], 1)} s)" for way in ways),
            "yes" if len({f"{r[way]['objective']:.6f}" for way in ways}) == 1 else "**no**",
        ]
        for r in records
        if "alone" in r
    ]
    lines: list[str] = []
    if rates:
        header = ["", "workers", "nodes a second", "nodes a processor second", "busy, %"]
        lines += list_table(header, rates)
    if proofs:
        header = ["nodes to the proof", "alone", "two workers", "one killed", "same optimum"]
        lines += list_table(header, proofs)
    return lines


# --- cold start ---


def cold_start(records: list[Record]) -> list[str]:
    """Seconds and memory of a new process."""
    rows = [
        [r["task"], number(r["wall"]), number(r["cpu"]), number(r["peak_megabytes"], 0)]
        for r in records
    ]
    return list_table(["new process", "seconds", "processor seconds", "peak MB"], rows)


RUN = "python -m benchmarks run"
SECTIONS = [
    Section(
        "The engine against formulation (19)",
        "against-formulation.jsonl",
        f"{RUN} against-formulation --data FOLDER",
        "Seconds to a proof of optimality (soft margin, p = 0.9, two parents) of the engine and of "
        "the paper's integer program (19) on HiGHS, one core.",
        against_formulation,
    ),
    Section(
        "Hard problems and memory",
        "table-one.jsonl",
        f"{RUN} table-one --data FOLDER",
        "The data sets that the paper's solver did not finish, 60 seconds on one core; how long "
        "searches take to a proof is in table 1 of the experiments.",
        hard_problems,
    ),
    Section(
        "Proofs of hard problems",
        "hard-proofs.jsonl",
        f"{RUN} hard-proofs --data FOLDER",
        "To the proof of optimality, on one core; the limit is 600 seconds.",
        hard_problems,
    ),
    Section(
        "Long runs",
        "long-runs.jsonl",
        f"{RUN} long-runs --data FOLDER",
        "What ten minutes on one core do not prove: half an hour on two cores, and for spambase "
        "(all its rows) up to two hours. A killed run resumes from its checkpoint.",
        hard_problems,
    ),
    Section(
        "Small gammas",
        "small-gamma.jsonl",
        f"{RUN} small-gamma --data FOLDER",
        "The smallest gammas of the paper's grid, p = 0.501 and 0.6, where the relaxation is "
        "weakest; one core.",
        hard_problems,
    ),
    Section(
        "More than two parents",
        "three-parents.jsonl",
        f"{RUN} three-parents --data FOLDER",
        "Up to three parents, the class among them; one core.",
        hard_problems,
    ),
    Section(
        "Two workers",
        "two-workers.jsonl",
        f"{RUN} two-workers --data FOLDER",
        "Nodes per second of the first 30 seconds, the local search of the first worker included.",
        two_workers,
    ),
    Section(
        "General networks",
        "general.jsonl",
        f"{RUN} general --data FOLDER",
        "Best networks without a class from published score files, with proof: processor seconds "
        "on one core (limit 120 s on the clock), reading the file not counted; what was measured "
        "on the same machine, and what others published about theirs. Scores: the median of three.",
        general_networks,
    ),
    Section(
        "Classifiers: fit and predict",
        "classifiers.jsonl",
        f"{RUN} classifiers",
        "Processor seconds on one thread, the median of five; small integers as features, three "
        "classes.",
        classifiers,
    ),
    Section(
        "Growth",
        "growth.jsonl",
        f"{RUN} growth",
        "Processor seconds (one thread) and peak memory of one fit by rows, features and classes, "
        "next to other packages in the same run; searches (MDL, SM with two parents, SM1 with one) "
        "end after ten seconds. A line ends where a fit would take more than forty seconds or 16 "
        "GB of address space.\n\n.. image:: _static/growth.svg\n"
        "   :alt: processor seconds of fit over rows, features and classes",
        growth,
    ),
    Section(
        "Limits of time",
        "time-limits.jsonl",
        f"MARGINBN_CLOCK=processor {RUN} time-limits",
        "Fits of the soft margin to tables of four states, with limits by a clock of processor "
        "seconds. No first bound is given where none came that is better than gamma for every row, "
        "which is also the case where all rows reach gamma.",
        time_limits,
    ),
    Section(
        "Limits of memory",
        "memory-limits.jsonl",
        f"{RUN} memory-limits",
        'Random shapes with ``memory_limit="2 GB"``: what the process held beyond what it held '
        "before the fit.",
        memory_limits,
    ),
    Section(
        "Tables from Parquet",
        "long-tables.jsonl",
        f"MARGINBN_CLOCK=processor {RUN} long-tables",
        "Ten million rows, ten columns of numbers and ten of texts, read in pieces; the soft "
        "margin (SM, two parents) has 120 processor seconds, and its gap is proved for all rows.",
        long_tables,
    ),
    Section(
        "One search over a cluster",
        "cluster.jsonl",
        f"{RUN} cluster --data FOLDER",
        "Local Dask workers: nodes per second from the moment when parts of the tree are handed "
        "out, and proofs of optimality, also with a worker killed in the middle.",
        clusters,
    ),
    Section(
        "Cold start",
        "cold-start.jsonl",
        f"{RUN} cold-start",
        'A new process until the first answer, the median of three; "nothing compiled" once, with '
        "an empty folder for kernels, as after an installation.",
        cold_start,
    ),
]
