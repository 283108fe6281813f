"""The methods that are compared, each a function from a :class:`Task` to a :class:`Fitted`.

A method sees the test features only to predict them and never the test labels. One thread each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from experiments import machines, networks, rivals, searches
from experiments.fitted import Fitted
from experiments.networks import PAPER, Network
from experiments.protocol import TABLE1_SETS, Spec, Task
from experiments.settings import FIRST_SEED, Settings
from marginbn.exceptions import InputError, MissingDependencyError


@dataclass(frozen=True)
class Method:
    """A method: its name in tables, how it fits, and what it takes.

    Parameters
    ----------
    label
        Name in tables.
    fit
        Task to Fitted.
    speed
        "fast": fits in seconds where data sets are small, and gets several seeds there. "search":
        the same but for the sets of table 1. "slow": one seed.
    cost
        Rough factor of its time; for rivals, see :mod:`experiments.workload`.
    needs
        Package it is made of.
    is_paper
        One of the six methods of the paper's tables.
    is_extra
        Run only where it is asked for by name.
    """

    label: str
    fit: Callable[[Task], Fitted]
    speed: str = "fast"
    cost: float = 0.1
    needs: str = ""
    is_paper: bool = False
    is_extra: bool = False

    def require(self, name: str) -> None:
        """Say what is missing, before any work is done."""
        remedy = "or name other methods with --methods"
        if self.needs and find_spec(self.needs) is None:
            raise MissingDependencyError(
                f"the method {name} needs {self.needs}: pip install --group experiments, {remedy}"
            )
        if isinstance(self.fit, Network):
            try:
                self.fit.make()
            except (AttributeError, TypeError) as error:
                raise InputError(
                    f"the method {name} needs a newer marginbn ({error}): upgrade, {remedy}"
                ) from error

    def seeds(self, spec: Spec, settings: Settings) -> list[int]:
        """The seeds it gets on a data set."""
        hard = self.speed == "slow" or (self.speed == "search" and spec.name in TABLE1_SETS)
        n_seeds = settings.seeds if spec.is_small and not hard else 1
        return [FIRST_SEED + k for k in range(n_seeds)]


METHODS: dict[str, Method] = {
    "nb": Method("NB", Network("NaiveBayesClassifier", PAPER), is_paper=True),
    "tan": Method("TAN", Network("TANClassifier", PAPER), is_paper=True),
    "mdl": Method("MDL", networks.mdl(**PAPER), is_paper=True),
    "sm": Method("SM", networks.max_margin("multiclass", **PAPER), "search", is_paper=True),
    "sbm": Method("SBM", networks.max_margin("binary", **PAPER), "search", is_paper=True),
    "sm-trained": Method(
        "SM trained", networks.max_margin("multiclass", is_trained=True, **PAPER), "slow"
    ),
    "svm": Method("SVM (paper)", machines.support_vectors(machines.state_numbers), is_paper=True),
    "svm-raw": Method("SVM (raw)", machines.support_vectors(machines.raw_inputs), "slow"),
    "svm-indicators": Method(
        "SVM (indicators)", machines.support_vectors(machines.state_indicators), is_extra=True
    ),
    "bdeu": Method("BDeu", networks.bdeu),
    "bn": Method("BNClassifier", Network("BNClassifier", {}), cost=5.0),
    "logistic": Method("logistic", rivals.logistic, cost=3.0),
    "hgb": Method("HistGradientBoosting", rivals.hist_boosting, cost=0.5),
    "lightgbm": Method("LightGBM", rivals.light_boosting, cost=0.3, needs="lightgbm"),
    "lightgbm-tuned": Method(
        "LightGBM tuned", rivals.tuned_light_boosting, "slow", 5.0, "lightgbm"
    ),
    "catboost": Method("CatBoost", rivals.cat_boosting, "slow", 20.0, "catboost"),
    "ebm": Method("EBM", rivals.explainable_boosting, "slow", 30.0, "interpret"),
    "forest": Method("random forest", rivals.random_forest, cost=2.0),
}
TABLE1_METHODS: dict[str, Method] = {
    "gap-sm": Method("SM", searches.largest_margin("multiclass")),
    "gap-sbm": Method("SBM", searches.largest_margin("binary")),
    "proof-sm": Method("SM", searches.proved_margin("multiclass")),
    "proof-sbm": Method("SBM", searches.proved_margin("binary")),
}
LABELS = {name: method.label for name, method in METHODS.items()}
DEFAULT = tuple(name for name, method in METHODS.items() if not method.is_extra)
OF_PAPER = tuple(name for name, method in METHODS.items() if method.is_paper)
SAME_PROBLEM = {"sbm": "sm", "gap-sbm": "gap-sm", "proof-sbm": "proof-sm"}
"""With two classes the first is the second: it is not run, and tables show the other's figures."""


def is_needed(method: str, spec: Spec) -> bool:
    """False where a method is another one on this data set."""
    return not (spec.margins_are_one and method in SAME_PROBLEM)
