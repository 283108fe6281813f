"""Networks without a class: the structure of best score over all acyclic graphs, with a bound.

All columns are alike. Categories are states; numbers have no class to be cut against, so a numeric
column is cut at quantiles into ``n_bins`` bins of about equal weight, or at every value where it
has no more values than that. Everything else that happens to a raw table (identifiers, dates, rare
categories, missing values) is what the classifiers do with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from marginbn.classifiers.base import Fitted
from marginbn.classifiers.budget import FOR_SCORES, part_used, time_for_search
from marginbn.classifiers.search import ScoreParameter, SearchingEstimator, stamp_of
from marginbn.classifiers.validation import (
    check_count,
    check_positive,
    one_of,
    optional,
    parameter,
    seed_of,
)
from marginbn.data.discretize import N_BINS
from marginbn.data.encode import IsLate
from marginbn.data.labelled import MissingPolicy
from marginbn.data.table import Table
from marginbn.data.training import TrainingRows
from marginbn.exceptions import DataWarning, InputError, OptimalityWarning, warn_user
from marginbn.network.network import BayesianNetwork
from marginbn.network.wording import counted
from marginbn.problem.array_types import CodeArray, FloatArray
from marginbn.problem.candidates import Arc, resolve_arcs
from marginbn.problem.encoded import EncodedData
from marginbn.problem.problem import StructureProblem
from marginbn.problem.scores import SCORES
from marginbn.solvers import solve_structure


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianNetworkLearner(DensityMixin, SearchingEstimator):
    """The Bayesian network of best score, found exactly; no column is a class.

    Parameters
    ----------
    score : str, default="bic"
        "bic" ("mdl"), "aic", "bdeu", "k2" or "loglik". (``learner.score(X)`` is the mean log
        likelihood all the same.)
    max_parents : int or None, default=None
        Parents per variable; None allows any number (not for "loglik"), or as many as the scores
        of a large table permit (``max_parents_``).
    equivalent_sample_size : float, default=1.0
        Strength of the prior of ``score="bdeu"``.
    smoothing : float, default=1.0
        Added to every count for the parameters (not for the score).
    n_bins : int, default=4
        Bins of a numeric column: equal shares of the rows, cut at quantiles.
    missing : {"drop", "state", "auto", "error"}, default="drop"
        Rows with missing values are left out; or a missing value is a state of its column.
    column_kinds
        As in :class:`NaiveBayesClassifier`.
    required_arcs, forbidden_arcs : list of (parent, child), optional
        Arcs every (no) structure must have, by name or position.
    tiers : list of lists of variables, optional
        Temporal order: no arc leads from a later tier to an earlier one. Variables that no tier
        names are free.
    time_limit : float or None, default=50.0
        Seconds for the whole fit. Reading is not cut short; when three quarters of the rest have
        passed, no more parent sets are scored, with an :class:`OptimalityWarning`. Then all
        networks of up to ``max_parents_`` parents are compared, or the bound counts what is
        missing. The search has at least a tenth of the limit, up to half a second.
    certificate, random_state, n_jobs, search
        As in :class:`MaxMarginBNClassifier`.

    Attributes
    ----------
    n_candidates_ : int
        Parent sets of all variables that were left after pruning.
    max_parents_ : int
        Parents per variable in the networks that were compared; the number of variables less one
        if any number was allowed.

    Notes
    -----
    The other attributes are those of :class:`BNClassifier`: ``network_``, ``structure_``,
    ``objective_``, ``bound_``, ``gap_``, ``status_``, ``result_``, ``trace_``, ``preparation_``,
    ``coding_``, ``n_samples_``, ``n_dropped_`` and ``evidence_``. Variables have the order of the
    columns that are used.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn import BayesianNetworkLearner
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.random(500) < 0.3
    >>> wet = rng.random(500) < np.where(rain, 0.9, 0.2)
    >>> slippery = rng.random(500) < np.where(wet, 0.8, 0.1)
    >>> X = np.column_stack([rain, wet, slippery]).astype(int)
    >>> learner = BayesianNetworkLearner(tiers=[[0], [1], [2]]).fit(X)
    >>> learner.structure_.arcs, learner.status_
    (((0, 1), (1, 2)), 'optimal')
    >>> learner.sample(2, random_state=0).shape
    (2, 3)
    >>> bool(learner.score(X) > learner.score([[1, 0, 1]]))
    True
    """

    score: ScoreParameter = ScoreParameter("bic")
    max_parents: int | None = parameter(None, optional(partial(check_count, least=0)))
    equivalent_sample_size: float = parameter(1.0, check_positive)
    n_bins: int = parameter(N_BINS, partial(check_count, least=2))
    missing: MissingPolicy = parameter("drop", one_of(*get_args(MissingPolicy)))
    tiers: Any = None
    time_limit: float | None = parameter(50.0, optional(check_positive))

    def mean_score(self, X: Any, y: Any = None) -> float:
        """Mean log likelihood of rows, called as ``score(X, y=None)``."""
        return float(self.score_samples(X).mean())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name."""
        return {**super().get_params(deep), "score": self.__dict__["score"]}

    def check_parameters(self) -> None:
        """Refuse parameters that no data could make sense of."""
        super().check_parameters()
        name = self.__dict__["score"]
        one_of(*SCORES)("score", name)
        if name == "loglik" and self.max_parents is None:
            raise InputError(
                "max_parents must be given for score='loglik': every parent helps the likelihood"
            )

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn codings, structure and parameters.

        Parameters
        ----------
        X
            An array or data frame; every column is a variable. Larger than memory may be: the path
            of a Parquet file or folder, a pyarrow dataset, a DuckDB relation, a polars LazyFrame, a
            Dask DataFrame.
        y
            Ignored.
        sample_weight
            Weights of the rows; an integer weight counts as that many copies of the row.

        Returns
        -------
        self
        """
        return self._learn(self._read(X, None, sample_weight, has_class=False))

    def encode_table(self, table: Table) -> EncodedData:
        """The rows that are learned from."""
        rows = self._read(table, None, None, has_class=False)
        data = rows.encode(n_bins=self.n_bins).data
        _name_constant(data)
        return data

    def _learn(self, rows: TrainingRows) -> Self:
        """Structure and parameters."""
        training = rows.encode(part_used(self.time_limit, rows.elapsed), self.n_bins)
        data = training.data
        _name_constant(data)
        is_late = part_used(self.time_limit, rows.elapsed, FOR_SCORES)
        problem = self.build_problem(data, None if self.time_limit is None else is_late)
        self.n_candidates_ = problem.candidates.n_candidates
        most, rule = data.n_variables - 1, problem.candidates.rule
        asked = most if self.max_parents is None else min(self.max_parents, most)
        self.max_parents_ = min(rule.max_parents, most) if rule else most
        if is_late() and self.max_parents_ < asked:
            warn_user(
                "time_limit ended the scoring: networks of at most "
                f"{counted(self.max_parents_, 'parent')} per variable are compared; a larger "
                "time_limit allows more",
                OptimalityWarning,
            )
        how = self._how_to_search(time_for_search(self.time_limit, rows.elapsed()))
        before = stamp_of(self.certificate)
        result = solve_structure(problem, **how)
        fitted = Fitted(
            np.empty(0),
            training.coding,
            rows.preparation,
            result.structure,
            BayesianNetwork.fit(data, result.structure, self.smoothing),
            result,
            data.n_samples,
            rows.cost.n_dropped,
            self._evidence(result, data, before),
        )
        return self.restore(fitted)

    def arcs(self, names: Sequence[str]) -> tuple[tuple[Arc, ...], tuple[Arc, ...]]:
        """Required and forbidden arcs by index."""
        return resolve_arcs(names, self.required_arcs, self.forbidden_arcs, self.tiers)

    def build_problem(self, data: EncodedData, is_late: IsLate | None = None) -> StructureProblem:
        """What is maximised over which structures; of fewer parents if it is late."""
        return self._local_scores(data, is_late=is_late)

    # ------------------------------------------------------------------ what the network says

    def score_samples(self, X: Any) -> FloatArray:
        """Log probability of the states of every row (of its bins, no density); unknown values are
        summed out. Many rows, and tables that are read in pieces, are answered piece by piece.
        """
        check_is_fitted(self)
        return np.concatenate([self._score_codes(codes) for codes in self._encode_blocks(X)])

    def _score_codes(self, codes: CodeArray) -> FloatArray:
        joint = self.network_.log_joint_per_class(codes)
        known = codes[:, 0] >= 0
        values: FloatArray = logsumexp(joint, axis=1)
        values[known] = joint[known, codes[known, 0]]
        return values

    def sample(self, n_samples: int = 1, random_state: Any = None) -> NDArray[Any]:
        """Draw rows, (n_samples, variables).

        Categories are those of the training rows, a missing value is None. A number is one of the
        training values in the bin that was drawn: inside a bin numbers are independent.
        """
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        rng = np.random.default_rng(None if random_state is None else seed_of(random_state))
        codes = self.network_.sample_codes(n_samples, rng)
        columns = zip(self.coding_.columns, codes.T, strict=True)
        return np.column_stack([coding.draw(column, rng) for coding, column in columns])


def _name_constant(data: EncodedData) -> None:
    """Warn of columns that no arc can touch."""
    constant = [repr(variable.name) for variable in data.variables if variable.arity == 1]
    if constant:
        text = f"left out, because all rows have the same value: {', '.join(constant)}"
        warn_user(text, DataWarning)
