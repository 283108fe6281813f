"""What all classifiers share: encoding, parameters, prediction.

A subclass answers one question, :meth:`BaseBNClassifier._learn_structure`, and declares the checks
of its own parameters.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from marginbn.classifiers import validation
from marginbn.classifiers.budget import half_used
from marginbn.data import encode
from marginbn.data.encode import (
    EncodedTraining,
    UnseenCategories,
    add_unseen,
    encode_training,
    tell_tally,
    tell_unseen,
)
from marginbn.data.frames import frame_library
from marginbn.data.guardrails import find_slips
from marginbn.data.labelled import LabelledTable, MissingPolicy, report_sample
from marginbn.data.long_table import (
    check_target,
    encode_plan,
    plan_survey,
    survey,
)
from marginbn.data.new_rows import encode_row, feature_blocks
from marginbn.data.preparation import (
    MAX_STATES,
    Identifiers,
    Preparation,
    PreparationSettings,
    tell,
)
from marginbn.data.source import Source, row_pieces
from marginbn.data.table import Table, as_stream
from marginbn.exceptions import DataWarning, InputError
from marginbn.network.explain import Explanations, as_rows, explain_codes
from marginbn.network.network import BayesianNetwork
from marginbn.network.svg import draw_figure
from marginbn.network.wording import counted, percent
from marginbn.problem.encoded import EncodedData, contingency, with_class_column
from marginbn.problem.scores import log_likelihood
from marginbn.problem.structure import Structure
from marginbn.proof.checker.verdict import Verdict
from marginbn.solvers.result import SolveResult, Status, TracePoint


@dataclass(frozen=True)
class Evidence:
    """Why one should believe what a classifier says about its optimality.

    ``search``: the search ran in this process. ``file``: a model file claims it, and anybody can
    write a file. ``certificate``: a certificate of this very claim was checked.
    """

    source: Literal["search", "file", "certificate"] = "search"
    data_sha256: str | None = None  # of the rows learned from, as in a certificate
    total_weight: float | None = None  # of these rows
    certificate_sha256: str | None = None  # of the file that was written beside
    verdict: Verdict | None = None  # of the checker


RAW_TABLE_CHECKS: dict[str, validation.Check] = {
    "identifiers": validation.one_of(*get_args(Identifiers)),
    "max_states": validation.optional(partial(validation.check_count, least=2)),
    "class_weight": validation.check_class_weight,
}


class BaseBNClassifier(ClassifierMixin, BaseEstimator):
    """Bayesian-network classifier with smoothed maximum-likelihood parameters.

    Attributes
    ----------
    classes_ : ndarray
        Class labels.
    structure_ : Structure
        Parents of every variable; variable 0 is the class, variable i + 1 is the feature i of
        those that are used.
    network_ : BayesianNetwork
        The structure with its parameters: posteriors, sampling, most probable explanation.
    objective_, bound_, gap_ : float
        Score of the structure, proven upper bound on the score of any allowed structure, and
        the relative gap between the two.
    status_ : str
        How the search ended; ``"optimal"`` means proven.
    trace_ : tuple of TracePoint
        (seconds, objective, bound) over time.
    result_ : SolveResult
        All of the above as the solver returned it.
    feature_names_in_, n_features_in_
        As everywhere in scikit-learn.
    preparation_ : Preparation
        What became of the columns: ``left_out`` (name and reason), ``merged`` (rare categories).
    n_samples_ : int
        Training rows used.
    n_dropped_ : int
        Training rows left out because of missing values.
    evidence_ : Evidence
        Whether optimality was proven by this search, is claimed by a model file, or was verified
        with a certificate; and the SHA-256 of data and certificate.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier
    >>> X, y = [["red"], ["red"], ["blue"]], ["a", "a", "b"]
    >>> clf = NaiveBayesClassifier().fit(X, y)
    >>> clf.predict([["blue"], [None]]).tolist()
    ['b', 'a']
    >>> clf.predict_proba([[None]]).round(3).tolist()
    [[0.6, 0.4]]
    >>> clf.predict_log_proba([[None]]).round(3).tolist()
    [[-0.511, -0.916]]
    >>> clf.decision_function([[None]]).round(3).tolist()
    [-0.405]
    >>> print(clf.explain(["red"])[0])
    row 0: a (p = 0.7714) against b, odds 3.38 : 1
      x0 = red    +0.8109
      class = a   +0.4055
      log margin  +1.2164
    """

    _CHECKS: ClassVar[dict[str, validation.Check]] = {
        "smoothing": validation.check_positive,
        "missing": validation.one_of(*get_args(MissingPolicy)),
        "unseen": validation.one_of(*get_args(encode.UnseenPolicy)),
        **RAW_TABLE_CHECKS,
    }
    network_: BayesianNetwork

    def __init__(
        self,
        *,
        smoothing: float = 1.0,
        missing: str = "auto",
        unseen: str = "missing",
        column_kinds: Any = "auto",
        identifiers: str = "ignore",
        max_states: int | None = MAX_STATES,
        class_weight: Any = None,
    ) -> None:
        self._store(locals())

    def _store(self, parameters: dict[str, Any]) -> None:
        """Keep the arguments of a constructor, its ``locals()``; they are checked in ``fit``."""
        given = {k: v for k, v in parameters.items() if k not in ("self", "__class__")}
        self.__dict__.update(given)

    def _check_parameters(self) -> None:
        """Refuse parameters that no data could make sense of."""
        parameters = self.get_params(deep=False)
        for name, check in self._CHECKS.items():
            if name in parameters:
                check(name, parameters[name])

    @abstractmethod
    def _learn_structure(self, data: EncodedData) -> SolveResult:
        """Find the structure; the only thing a subclass must do."""

    def _choose_settings(self, rows: LabelledTable) -> None:
        """Choose by validation what is left open; most classifiers leave nothing open."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn codings, structure and parameters.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Numbers are discretised (Fayyad-Irani), strings and booleans are categories. Or a table
            that is read in pieces and need not fit into memory: the path of a Parquet file or of a
            folder of them, a pyarrow dataset, a DuckDB relation, a polars LazyFrame or a Dask
            DataFrame, with the class among its columns.
        y : array-like of shape (n_samples,)
            Class labels; the name of the class column where `X` is read in pieces.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; an integer weight counts as that many copies of the row.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._count_from(monotonic())
        stream = as_stream(X)
        if stream is not None:
            return self._fit_stream(stream, y, sample_weight)
        training = self._encode_training(
            validation.read_training_rows(self, X, y, sample_weight, kinds=self.column_kinds)
        )
        self._finish(training, self._learn_structure(training.data))
        self.network_ = self.network_.with_frames(frame_library(X))
        return self

    def _count_from(self, began: float) -> None:
        """Limits of time count from this moment of :func:`time.monotonic`."""
        self._began = began

    def _elapsed(self) -> float:
        """Seconds that the fit has taken so far; 0 where nobody has said when it began."""
        return monotonic() - self._began if hasattr(self, "_began") else 0.0

    @property
    def _limit_of_fit(self) -> float | None:
        """Seconds for the whole fit, if it has a limit."""
        return None

    def _fit_stream(self, stream: Source, target: Any, sample_weight: Any) -> Self:
        """Learn from a table in blocks; a short one is read as a whole."""
        if sample_weight is not None:
            raise InputError(
                "sample_weight must be None for a table that is read in pieces; use class_weight"
            )
        found = survey(stream, check_target(stream, target), self.column_kinds)
        if found.is_whole:
            return self._fit_table(found.drawn)
        settings = self._preparation_settings()
        plan = plan_survey(found, settings, self.missing, self.class_weight, stacklevel=4)
        self._choose(plan.rows, found.n_rows)
        made = encode_plan(found, plan)
        tell(made.preparation, settings, stacklevel=4)  # the caller of fit
        for line in find_slips(found.drawn, made.preparation.used_names):
            warnings.warn(line, DataWarning, stacklevel=3)
        report_sample(made.sampled, found.n_rows, stacklevel=3)
        self.feature_names_in_ = np.array(found.names, dtype=object)
        self.n_features_in_ = len(found.names)
        self.data_fingerprint_, self.preparation_ = made.fingerprint, made.preparation
        self.n_samples_, self.n_dropped_ = made.data.n_samples, made.n_dropped
        return self._finish(made.training, self._learn_structure(made.data))

    @property
    def _validates(self) -> bool:
        """Whether settings are chosen by validation."""
        return type(self)._choose_settings is not BaseBNClassifier._choose_settings

    def _choose(self, rows: LabelledTable, n_rows: int) -> None:
        """Choose settings by validation, on the sample of a long table."""
        if rows.n_rows < n_rows and self._validates:
            warnings.warn(
                f"what is chosen by validation is chosen on {rows.n_rows} of {n_rows} rows, drawn "
                "at random with a fixed seed; counts are those of all rows",
                DataWarning,
                stacklevel=5,
            )
        self._choose_settings(rows)

    def _fit_table(self, rows: LabelledTable) -> Self:
        """Learn from rows that are read already, with parameters that are checked already."""
        validation.set_feature_names(self, rows.features)
        training = self._encode_training(rows)
        return self._finish(training, self._learn_structure(training.data))

    def _encode_training(self, given: LabelledTable) -> EncodedTraining:
        self.data_fingerprint_ = given.fingerprint()
        rows = self._prepare(given).without_missing(self.missing, stacklevel=4)  # caller of fit
        self.n_samples_, self.n_dropped_ = rows.n_rows, given.n_rows - rows.n_rows
        rows = rows.reweighted(self.class_weight)
        self._choose(rows.sampled(), rows.n_rows)
        is_late = half_used(self._limit_of_fit, self._elapsed)
        return encode_training(rows, self.missing, is_late)

    def _prepare(self, given: LabelledTable) -> LabelledTable:
        """Columns left out, rare categories merged, dates taken apart; each is told."""
        settings = self._preparation_settings()
        self.preparation_ = settings.learn(given.features)
        tell(self.preparation_, settings, stacklevel=5)  # the caller of fit
        for line in find_slips(given, self.preparation_.used_names):
            warnings.warn(line, DataWarning, stacklevel=5)
        return replace(given, features=self.preparation_.apply_to_all(given.features))

    def _preparation_settings(self) -> PreparationSettings:
        return PreparationSettings(self.identifiers, self.max_states, self.column_kinds)

    @property
    def _preparation(self) -> Preparation:
        """What became of the columns in training; nothing where nobody says so."""
        unchanged = Preparation.unchanged({c.name: c.kind for c in self.coding_.columns})
        return getattr(self, "preparation_", unchanged)

    def _finish(self, training: EncodedTraining, result: SolveResult) -> Self:
        """Estimate parameters and set the fitted attributes."""
        for name in ("provenance_", "_began"):  # of earlier fits
            self.__dict__.pop(name, None)
        self.classes_, self.coding_ = training.classes, training.coding
        self.network_ = BayesianNetwork.fit(training.data, result.structure, self.smoothing)
        self.evidence_ = self._evidence(training.data)
        return self._set_result(result)

    def _set_result(self, result: SolveResult) -> Self:
        self.result_, self.structure_ = result, result.structure
        self.objective_, self.bound_, self.gap_ = result.objective, result.bound, result.gap
        self.status_, self.trace_ = str(result.status), result.trace
        return self

    def _evidence(self, data: EncodedData) -> Evidence:
        """What a later reader can compare with."""
        return Evidence(total_weight=float(data.total_weight))

    def _read_features(self, X: Any) -> Table:
        """Rows to predict, read with the columns and kinds of training."""
        check_is_fitted(self)
        preparation = self._preparation
        return preparation.apply(validation.read_more_rows(self, X, preparation))

    def _encode(self, X: Any) -> NDArray[np.int32]:
        """Codes of rows to predict; of a single row by looking its values up."""
        check_is_fitted(self)
        row = validation.single_row(self, X)
        coded = None if row is None else encode_row(self._preparation, self.coding_, row)
        if coded is not None:
            return coded
        table = self._read_features([X] if isinstance(X, Mapping) else X)
        codes = self.coding_.encode(table, self.unseen)
        tell_unseen(self.coding_, table)
        return codes

    def _log_joint(self, X: Any) -> NDArray[np.float64]:
        """log P(c, known features) for every row and class; unknown features are summed out.

        Many rows are read, encoded and answered piece by piece.
        """
        check_is_fitted(self)
        stream = as_stream(X)
        if stream is not None:
            return self._log_joint_of_tables(
                feature_blocks(self._preparation, self.coding_, stream)
            )
        pieces = row_pieces(X)
        if pieces is None:
            return self._log_joint_of_codes(with_class_column(self._encode(X)))
        return self._log_joint_of_tables(self._read_features(piece) for piece in pieces)

    def _log_joint_of_tables(self, tables: Iterable[Table]) -> NDArray[np.float64]:
        """The same of prepared columns, table by table."""
        answers, tally = [], dict[str, UnseenCategories]()
        for table in tables:
            add_unseen(tally, self.coding_, table)
            codes = self.coding_.encode(table, self.unseen)
            answers.append(self._log_joint_of_codes(with_class_column(codes)))
        tell_tally(tally)
        return np.concatenate(answers)

    def _log_joint_of_codes(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """The same of encoded rows with the class in column 0, which is ignored; -1 is unknown."""
        return self.network_.log_joint_per_class(codes)

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of every row; ties go to the first class."""
        decided = self._log_joint(X).argmax(axis=1)  # first: it refuses an unfitted estimator
        labels: NDArray[Any] = self.classes_[decided]
        return labels

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Log posterior of every class, shape (n_samples, n_classes)."""
        return log_posteriors(self._log_joint(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Posterior of every class, shape (n_samples, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Log odds of the second class if there are two classes, else log posteriors."""
        log_proba = self.predict_log_proba(X)
        if len(self.classes_) == 2:
            odds: NDArray[np.float64] = log_proba[:, 1] - log_proba[:, 0]
            return odds
        return log_proba

    def explain(self, X: Any, y: Any = None) -> Explanations:
        """Why each row is predicted as it is: its log margin as a sum over the variables.

        The predicted class is compared with its nearest rival, or the labels ``y`` with theirs.
        One row on its own (a list, an array, a data-frame row) is welcome too.
        """
        codes = self._encode(as_rows(X))  # first: it refuses an unfitted estimator
        found = explain_codes(self.network_, self.classes_, codes, y)
        return replace(found, frames=frame_library(X))

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._network_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._network_html()
        return bundle

    def _network_html(self) -> str:
        """What scikit-learn's box does not say: what came out, and the network."""
        if not all(hasattr(self, name) for name in ("network_", "result_", "evidence_")):
            return ""
        network, result = self.network_, self.result_
        claim = "claimed by the file" if self.evidence_.source == "file" else result.solver
        optimality = "optimal" if result.is_optimal else str(result.status).replace("_", " ")
        caption = (
            f"{counted(network.n_variables - 1, 'feature')}, "
            f"{counted(len(network.structure.arcs), 'arc')}, "
            f"{counted(network.n_parameters, 'parameter')}; "
            f"structure: {optimality} ({claim}), gap {percent(result.gap)}. "
            "How well it classifies, only other rows can tell: score(X, y)."
        )
        return draw_figure(network.structure, network.variables, caption)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def log_posteriors(log_joint: NDArray[np.float64]) -> NDArray[np.float64]:
    """log P(c | known features) of log P(c, known features), both (n_rows, n_classes)."""
    normalised: NDArray[np.float64] = log_joint - logsumexp(log_joint, axis=1, keepdims=True)
    return normalised


def fixed_structure_result(
    data: EncodedData, parents: Sequence[tuple[int, ...]], solver: str, seconds: float = 0.0
) -> SolveResult:
    """Result for a structure known to be optimal in its family: its maximised log likelihood."""
    structure = Structure(tuple(parents))
    objective = 0.0
    for child, parent_set in enumerate(structure.parents):
        counts = contingency(data, (*parent_set, child))
        objective += log_likelihood(counts.reshape(-1, counts.shape[-1]), data.total_weight)
    return SolveResult(
        structure=structure,
        selection=np.zeros(data.n_variables, dtype=np.int64),
        objective=objective,
        bound=objective,
        status=Status.OPTIMAL,
        trace=(TracePoint(seconds, objective, objective),),
        seconds=seconds,
        solver=solver,
    )
