"""Which runs belong together: what each table needs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.instances import Instance

SMALL = [
    "australian",
    "breast",
    "car",
    "cleve",
    "corral",
    "crx",
    "diabetes",
    "flare",
    "glass",
    "glass2",
    "heart",
    "hepatitis",
    "iris",
    "lymphography",
    "mofn-3-7-10",
    "pima",
    "vote",
]
MEDIUM = ["german", "abalone", "nursery", "mushroom", "shuttle-small", "adult"]
TABLE_ONE = [
    "letter",
    "satimage",
    "segment",
    "soybean-large",
    "vehicle",
    "adult",
    "spambase",
    "chess",
    "waveform-21",
]
MULTICLASS = {"letter", "satimage", "segment", "soybean-large", "vehicle"}
ALL = sorted({*SMALL, *MEDIUM, *TABLE_ONE})


@dataclass(frozen=True)
class Run:
    """One instance, one solver, one limit."""

    instance: Instance
    solver: str
    seconds: float
    n_jobs: int = 1

    @property
    def key(self) -> str:
        """Identifies the run in a file of records."""
        return f"{self.instance} {self.solver} {self.seconds:g} {self.n_jobs}"


def proofs() -> list[Run]:
    """Small data sets at three p, medium ones and binary margins at p = 0.9."""
    runs = [
        Run(Instance(name, "sm", p, 2), "branch_bound", 60.0)
        for name in SMALL
        for p in (0.6, 0.9, 0.99)
    ]
    runs += [Run(Instance(name, "sm", 0.9, 2), "branch_bound", 120.0) for name in MEDIUM]
    binary = [("vehicle", 0.9), ("vehicle", 0.99), ("soybean-large", 0.9)]
    return runs + [Run(Instance(n, "sbm", p, 2), "branch_bound", 60.0) for n, p in binary]


def table_one() -> list[Run]:
    """The hard data sets at 60 seconds."""
    return [
        Run(Instance(name, kind, 0.9, 2), "branch_bound", 60.0)
        for name in TABLE_ONE
        for kind in (("sm", "sbm") if name in MULTICLASS else ("sm",))
    ]


def against_formulation() -> list[Run]:
    """The engine next to formulation (19) on HiGHS."""
    names = [
        "breast",
        "cleve",
        "crx",
        "lymphography",
        "vote",
        "german",
        "glass",
        "heart",
        "diabetes",
        "corral",
    ]
    runs = [
        Run(Instance(name, "sm", 0.9, 2), solver, 300.0)
        for name in names
        for solver in ("branch_bound", "highs")
    ]
    return runs + [
        Run(Instance(name, "sm", 0.9, 2), solver, 60.0)
        for name in ("vehicle", "segment")
        for solver in ("branch_bound", "highs")
    ]


def hard_proofs() -> list[Run]:
    """The hard problems that are proved within ten minutes, to their proofs."""
    names = ["segment", "vehicle", "chess", "soybean-large", "waveform-21", "adult", "german"]
    binary = [Instance(name, "sbm", 0.9, 2) for name in ("segment", "letter")]
    instances = [Instance(name, "sm", 0.9, 2) for name in names]
    instances += [*binary, Instance("german", "sm", 0.6, 2)]
    return [Run(instance, "branch_bound", 600.0) for instance in instances]


def long_runs() -> list[Run]:
    """What ten minutes do not prove, on two cores; a killed run goes on from its checkpoint."""
    half_an_hour = [
        Run(Instance(name, kind, 0.9, 2), "branch_bound", 1800.0, 2)
        for name, kind in (("letter", "sm"), ("satimage", "sm"), ("satimage", "sbm"))
    ]
    return [*half_an_hour, Run(Instance("spambase", "sm", 0.9, 2), "branch_bound", 7200.0, 2)]


def small_gamma() -> list[Run]:
    """The smallest gammas of the paper's grid."""
    runs = [Run(Instance(name, "sm", 0.501, 2), "branch_bound", 20.0) for name in SMALL]
    return [*runs, Run(Instance("vehicle", "sm", 0.6, 2), "branch_bound", 60.0)]


def two_workers() -> list[Run]:
    """One and two workers on the same trees: nodes per second, and the same optimum on all proofs
    (into the file of ``proofs``, whose table then compares them).
    """
    rates = [
        Run(Instance(name, "sm", 0.9, 2), "branch_bound", 30.0, n_jobs)
        for name in ("vehicle", "chess", "spambase", "satimage", "letter", "waveform-21")
        for n_jobs in (1, 2)
    ]
    return rates + [replace(run, n_jobs=2) for run in proofs()]


def three_parents() -> list[Run]:
    """max_parents = 3 beside formulation (19)."""
    small = [
        Run(Instance(name, "sm", 0.9, 3), "auto", 300.0)
        for name in ("iris", "glass", "heart", "corral")
    ]
    large = [
        Run(Instance(name, "sm", 0.9, 3), solver, 120.0)
        for name in ("crx", "german")
        for solver in ("auto", "highs")
    ]
    return small + large


def linear() -> list[Run]:
    """MDL: the paper's candidate sets, and general networks."""
    restricted = [
        Run(Instance(name, "mdl", None, 2), "auto", 60.0)
        for name in ("spambase", "chess", "mofn-3-7-10")
    ]
    general = [
        Run(Instance(name, "mdl-general", None, 3), "auto", 60.0)
        for name in ("vehicle", "lymphography")
    ]
    return [
        *restricted,
        *general,
        Run(Instance("soybean-large", "mdl-general", None, 2), "auto", 300.0),
    ]


def first_answers() -> list[Run]:
    """Three seconds for every data set: is there an incumbent and a finite bound?"""
    return [Run(Instance(name, "sm", 0.9, 2), "branch_bound", 3.0) for name in ALL]


def smoke() -> list[Run]:
    """Seconds in total, no data folder needed."""
    small = Instance("random-200-8-3-0", "sm", 0.9, 2)
    return [Run(small, "branch_bound", 10.0), Run(small, "highs", 5.0)]


SUITES = {
    "proofs": proofs,
    "table-one": table_one,
    "hard-proofs": hard_proofs,
    "long-runs": long_runs,
    "small-gamma": small_gamma,
    "against-formulation": against_formulation,
    "two-workers": two_workers,
    "three-parents": three_parents,
    "linear": linear,
    "first-answers": first_answers,
    "smoke": smoke,
}
