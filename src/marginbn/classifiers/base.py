"""What all classifiers share: reading rows, adopting what was learned, prediction.

A subclass answers one question, :meth:`BaseBNClassifier._learn`: what is learned from these rows?
The answer is a :class:`Fitted`, a value. ``fit`` adopts it, and so does a model file.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from marginbn.class_model.answers import Answers
from marginbn.class_model.basis import CellTraining, encode_cells
from marginbn.class_model.choose import train_tables
from marginbn.class_model.trainer import ClassModel
from marginbn.classifiers import validation
from marginbn.classifiers.budget import report_phase
from marginbn.classifiers.measures import HeldOut
from marginbn.classifiers.validation import check_positive, one_of, parameter
from marginbn.data.columns import as_input_errors
from marginbn.data.encode import EncodedTraining, IsLate, TableCoding
from marginbn.data.labelled import ClassWeight, LabelledTable, MissingPolicy
from marginbn.data.preparation import Preparation, TableSettings, coded_blocks, encode_row
from marginbn.data.table import Table, as_stream
from marginbn.data.training import TrainingRows, check_target, survey, survey_rows
from marginbn.exceptions import InputError
from marginbn.network.explain import (
    Explanations,
    as_rows,
    explain_codes,
    influence,
    log_posteriors,
    plain_label,
)
from marginbn.network.network import BayesianNetwork
from marginbn.network.wording import counted, percent
from marginbn.problem.array_types import CodeArray, FloatArray
from marginbn.problem.encoded import EncodedData, with_class_column
from marginbn.problem.structure import CLASS, Structure
from marginbn.solvers.result import SolveResult, Status, TracePoint

if TYPE_CHECKING:
    from marginbn.classifiers.model_file import Provenance
    from marginbn.proof.checker.verdict import Verdict

ParameterKind = Literal["counted", "trained"]

FIXED = "fixed"
"""``status_`` where there was only one structure, so that nothing was searched or proved."""


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


@dataclass(frozen=True, eq=False)
class GridChoice:
    """What a validation chose: the setting, its score, and the scores of all settings.

    ``results`` has one column per measure with one entry per setting, as ``cv_results_``.
    """

    max_parents: int
    gamma: float
    score: float
    results: dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was learned from some rows: all that a classifier needs to predict and to be saved."""

    classes: NDArray[Any]  # labels, sorted
    coding: TableCoding  # states of the feature columns
    preparation: Preparation  # what became of the columns of the table
    structure: Structure
    network: BayesianNetwork
    result: SolveResult | None  # of the search; None where there was only one structure
    n_samples: int
    n_dropped: int  # rows left out because of missing values
    evidence: Evidence
    fingerprint: str | None = None  # SHA-256 of the table, where it is known
    class_model: ClassModel | None = None  # None where tables are counted
    held_out: HeldOut | None = None
    choice: GridChoice | None = None
    provenance: Provenance | None = None  # where it comes from a file


class FittedAttributes:
    """What ``restore`` sets; all below the empty line in classifiers only."""

    coding_: TableCoding
    preparation_: Preparation
    network_: BayesianNetwork
    result_: Any  # SolveResult, or None where there was only one structure
    trace_: tuple[TracePoint, ...]
    provenance_: Provenance | None

    classes_: NDArray[Any]
    class_model_: ClassModel | None
    answers_: Answers | None
    held_out_: HeldOut | None


@dataclass(kw_only=True, eq=False, repr=False)
class TableEstimator(FittedAttributes, BaseEstimator):
    """What learns from a raw table, with a class or without.

    Constructor parameters are the fields of a dataclass: name, type, default, and what refuses
    wrong values (:func:`~marginbn.classifiers.validation.parameter`) stand in one line. Subclasses
    inherit them.
    """

    smoothing: float = parameter(1.0, check_positive)
    missing: MissingPolicy = parameter("auto", one_of(*get_args(MissingPolicy)))
    column_kinds: Any = "auto"

    def check_parameters(self) -> None:
        """Refuse parameters that no data could make sense of."""
        for own in fields(self):
            if check := own.metadata.get("check"):
                check(own.name, getattr(self, own.name))

    def table_settings(self) -> TableSettings:
        """How this estimator makes rows to learn from of a raw table."""
        weight = getattr(self, "class_weight", None)
        return TableSettings(self.column_kinds, self.missing, weight)

    @property
    def table_smoothing(self) -> float:
        """Added to every count of the tables of ``network_``."""
        return float(self.smoothing)

    def _read(self, X: Any, y: Any, sample_weight: Any, has_class: bool = True) -> TrainingRows:
        """What ``fit`` is given, as rows to learn from; a stream is read in pieces."""
        self.check_parameters()
        began, kinds, stream = monotonic(), self.column_kinds, as_stream(X)
        if stream is not None:
            if sample_weight is not None:
                instead = "; use class_weight" if has_class else ""
                raise InputError(
                    f"sample_weight must be None for a table that is read in pieces{instead}"
                )
            target = check_target(stream, y) if has_class else None
            found = survey(stream, target, kinds, self.get_params(deep=False).get("time_limit"))
            validation.set_feature_names(self, found.names)
        else:
            rows = validation.read_training_rows(
                self, X, y, sample_weight, kinds=kinds, has_class=has_class
            )
            found = survey_rows(rows, has_class)
        return TrainingRows.of(found, self.table_settings(), began)

    def restore(self, fitted: Fitted) -> Self:
        """Become the estimator that was fitted; what an earlier fit left behind is replaced."""
        self.coding_, self.preparation_ = fitted.coding, fitted.preparation
        self.structure_, self.network_ = fitted.structure, fitted.network
        self.n_samples_, self.n_dropped_ = fitted.n_samples, fitted.n_dropped
        self.evidence_, self.provenance_ = fitted.evidence, fitted.provenance
        self.data_fingerprint_, self.result_ = fitted.fingerprint, fitted.result
        result = fitted.result
        self.status_ = FIXED if result is None else str(result.status)
        self.objective_ = None if result is None else result.objective
        self.bound_ = None if result is None else result.bound
        self.gap_ = None if result is None else result.gap
        self.trace_ = () if result is None else result.trace
        return self

    @property
    def row_coding(self) -> TableCoding:
        """How values of rows to answer become codes."""
        return self.coding_

    def prepare(self, X: Any) -> Table:
        """Rows to answer as the columns that were learned from."""
        check_is_fitted(self)
        preparation = self.preparation_
        return preparation.apply(validation.read_more_rows(self, X, preparation))

    def encode(self, X: Any) -> CodeArray:
        """Rows to answer as codes of the features, (n_samples, n_features); -1 is unknown."""
        return np.concatenate(list(self._encode_blocks(X)))

    def _encode_blocks(self, X: Any) -> Iterator[CodeArray]:
        """The same, block by block."""
        check_is_fitted(self)
        source = as_stream(X) or validation.source_of_rows(self, X, self.preparation_)
        with as_input_errors():
            for _, codes in coded_blocks(self.preparation_, self.row_coding, source):
                yield codes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class BaseBNClassifier(ClassifierMixin, TableEstimator):
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
    objective_, bound_, gap_ : float or None
        Score of the structure, proven upper bound on the score of any allowed structure, and
        the relative gap between the two; None where nothing was searched.
    status_ : str
        How the search ended; ``"optimal"`` means proved, ``"fixed"`` that there was only one
        structure.
    trace_ : tuple of TracePoint
        (seconds, objective, bound) over time.
    result_ : SolveResult or None
        All of the above as the solver returned it.
    feature_names_in_, n_features_in_
        As everywhere in scikit-learn.
    preparation_ : Preparation
        What became of the columns: ``left_out`` (name and reason), ``merged`` (rare categories).
    n_samples_ : int
        Training rows used.
    n_dropped_ : int
        Training rows left out because of missing values.
    data_fingerprint_ : str
        SHA-256 of the table that was learned from.
    evidence_ : Evidence
        Whether optimality was proven by this search, is claimed by a model file, or was verified
        with a certificate; and the SHA-256 of data and certificate.
    class_model_ : ClassModel or None
        The tables that predict with ``parameters="trained"``; ``network_`` has the counted ones.
    held_out_ : HeldOut or None
        With ``parameters="trained"``: probabilities of the rows that chose the amount of smoothing.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier
    >>> from marginbn.data.table import as_table
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
    >>> codes = clf.encode(clf.prepare([["red"]]))
    >>> clf.log_joint_of_codes(np.column_stack([[0], codes])).round(3).tolist()
    [[-0.799, -2.015]]
    >>> clf.explain_encoded(codes)[0].label
    'a'
    >>> clf.row_coding.columns[0].categories, clf.table_smoothing
    (('blue', 'red'), 1.0)
    >>> clf.table_settings().missing
    'auto'

    Rows that are read already, and a fit that is handed on:

    >>> rows = LabelledTable.of(as_table(X), np.array(y))
    >>> clf.check_parameters()
    >>> clf.fit_rows(rows).status_
    'fixed'
    >>> clf.fit_prepared(TrainingRows.of(survey_rows(rows), clf.table_settings())).n_samples_
    3
    >>> network = clf.network_
    >>> again = Fitted(
    ...     clf.classes_, clf.coding_, clf.preparation_, network.structure, network, None, 3, 0,
    ...     clf.evidence_,
    ... )
    >>> NaiveBayesClassifier().restore(again).n_samples_
    3
    >>> print(clf.explain(["red"])[0])
    row 0: class a (p = 0.7714) against b, odds 3.38 : 1
      x0 = red   +0.8109
      class = a  +0.4055
      log-odds   +1.2164
    """

    parameters: ParameterKind = parameter("counted", one_of(*get_args(ParameterKind)))
    class_weight: ClassWeight = parameter(None, validation.check_class_weight)

    @abstractmethod
    def _learn(self, rows: TrainingRows) -> Fitted:
        """What is learned from the rows; the only thing a subclass must say."""

    @abstractmethod
    def _learn_again(self, data: EncodedData) -> Structure:
        """The structure of other rows, for validation: no files, no progress, no clock."""

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
        return self.restore(self._learn(self._read(X, y, sample_weight)))

    def fit_rows(self, rows: LabelledTable) -> Self:
        """Learn from rows that are read already."""
        self.check_parameters()
        return self.fit_prepared(TrainingRows.of(survey_rows(rows), self.table_settings()))

    def fit_prepared(self, rows: TrainingRows) -> Self:
        """Learn from rows that are prepared already, by the settings of this classifier."""
        validation.set_feature_names(self, rows.found.names)
        return self.restore(self._learn(rows))

    def restore(self, fitted: Fitted) -> Self:
        """Become the classifier that was fitted."""
        self.classes_ = fitted.classes
        self.class_model_, self.held_out_ = fitted.class_model, fitted.held_out
        model = fitted.class_model
        self.answers_ = None if model is None else Answers(fitted.network, model)
        return super().restore(fitted)

    def _count(
        self,
        rows: TrainingRows,
        training: EncodedTraining,
        structure: Structure,
        result: SolveResult | None = None,
        evidence: Evidence | None = None,
    ) -> Fitted:
        """The structure with the tables that are counted in the rows, and with trained ones."""
        data, model, held_out = training.data, None, None
        wants_model = self.parameters == "trained" and len(training.classes) > 1
        if wants_model and isinstance(training, CellTraining):
            model, held_out = self._train(rows, training, structure, result)
        return Fitted(
            training.classes,
            training.coding,
            rows.preparation,
            structure,
            BayesianNetwork.fit(data, structure, self.table_smoothing),
            result,
            rows.n_samples,
            rows.cost.n_dropped,
            evidence or Evidence(total_weight=float(data.total_weight)),
            rows.found.fingerprint(),
            model,
            held_out,
        )

    def _encode(self, rows: TrainingRows, is_late: IsLate = lambda: False) -> EncodedTraining:
        """Rows to learn from as codes; with cells of the class model where it is to be trained."""
        return rows.encode(is_late) if self.parameters == "counted" else encode_cells(rows)

    def _train(
        self,
        rows: TrainingRows,
        training: CellTraining,
        structure: Structure,
        result: SolveResult | None,
    ) -> tuple[ClassModel, HeldOut | None]:
        """Tables trained on the structure; without a validation where the user wants to stop."""
        parameters = self.get_params(deep=False)
        model, judged = train_tables(
            rows,
            training,
            structure,
            self._learn_again,
            seed=validation.seed_of(parameters.get("random_state")),
            time_limit=parameters.get("time_limit"),
            searched=0.0 if result is None else result.seconds,
            is_stopped=result is not None and result.status is Status.INTERRUPTED,
            tell=report_phase,
        )
        return model, None if judged is None else HeldOut(*judged)

    def _encode_blocks(self, X: Any) -> Iterator[CodeArray]:
        """The same; the values of a single row are looked up."""
        check_is_fitted(self)
        row = validation.single_row(self, X)
        coded = None if row is None else encode_row(self.preparation_, self.row_coding, row)
        if coded is not None:
            yield coded
        else:
            yield from super()._encode_blocks([X] if isinstance(X, Mapping) else X)

    @property
    def row_coding(self) -> TableCoding:
        """How values of rows become codes: states of ``network_``, or with trained tables their
        cells.
        """
        return self.coding_ if self.class_model_ is None else self.class_model_.design.cells.coding

    def log_joint_of_codes(self, codes: NDArray[np.integer]) -> FloatArray:
        """log P(c, known features) for every row and class; unknown features are summed out.

        With trained tables it is log P(c | known features). ``codes`` (n_samples, n_variables) are
        those of :meth:`encode`, with the class in column 0, which is ignored.
        """
        if self.answers_ is None:
            return self.network_.log_joint_per_class(codes)
        return self.answers_.log_posterior(codes[:, 1:])

    def _log_joint(self, X: Any) -> FloatArray:
        """The same of rows to predict."""
        check_is_fitted(self)
        blocks = self._encode_blocks(X)
        return np.concatenate([self.log_joint_of_codes(with_class_column(b)) for b in blocks])

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of every row; ties go to the first class."""
        decided = self._log_joint(X).argmax(axis=1)  # first: it refuses an unfitted estimator
        labels: NDArray[Any] = self.classes_[decided]
        return labels

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log posterior of every class, shape (n_samples, n_classes)."""
        return log_posteriors(self._log_joint(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Posterior of every class, shape (n_samples, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Any) -> FloatArray:
        """Log odds of the second class if there are two classes, else log posteriors."""
        log_proba = self.predict_log_proba(X)
        if len(self.classes_) == 2:
            odds: FloatArray = log_proba[:, 1] - log_proba[:, 0]
            return odds
        return log_proba

    def explain(self, X: Any, y: Any = None) -> Explanations:
        """Why each row is predicted as it is: its log margin as a sum over the variables.

        The predicted class is compared with its nearest rival, or the labels ``y`` with theirs.
        One row on its own (a list, an array, a data-frame row) is welcome too.
        """
        codes = self.encode(as_rows(X))  # first: it refuses an unfitted estimator
        return self.explain_encoded(codes, y)

    def explain_encoded(self, codes: CodeArray, y: Any = None) -> Explanations:
        """The same of rows that are codes already, as :meth:`encode` makes them."""
        if self.answers_ is None:
            return explain_codes(self.network_, self.classes_, codes, y)
        return self.answers_.explain(self.classes_, codes, y)

    @property
    def feature_importances_(self) -> FloatArray:
        """How far each column of the training table, known alone, moves the class probabilities.

        For a column with states s and classes c it is ``1/2 sum |P(c, s) - P(c) P(s)|``, with
        two classes the mean of ``|P(c | s) - P(c)|``; of a date the largest of its parts. Columns
        that are left out have 0. The report and ``marginbn show`` print the same numbers in
        points (%).
        """
        check_is_fitted(self)
        network = self.network_
        joints = (network.posterior_array([0, i]) for i in range(1, network.n_variables))
        points = {v.name: influence(j) for v, j in zip(network.variables[1:], joints, strict=True)}
        return np.array(
            [
                0.0 if plan.left_out else max(points[name] for name in plan.result_names)
                for plan in self.preparation_.columns
            ]
        )

    def posterior(self, evidence: Mapping[str | int, Any]) -> dict[Any, float]:
        """P(class | what is known), by class label.

        Parameters
        ----------
        evidence
            Known values by column: a value of the table, or a state of ``network_`` such as
            ``"<= 20"``; None or NaN means a value that is missing, where training had such rows.
            Columns that are not named are unknown.

        Examples
        --------
        >>> {label: round(p, 3) for label, p in clf.posterior({"x0": "red"}).items()}
        {'a': 0.771, 'b': 0.229}
        """
        check_is_fitted(self)
        if not isinstance(evidence, Mapping):
            raise InputError(
                f"evidence must map columns to values, got {type(evidence).__name__}; give it as "
                "in {'age': 53}"
            )
        known = self.preparation_.apply_to_values(evidence, self.network_.names)
        if self.answers_ is None:
            answer = self.network_.posterior_array(CLASS, known)
        else:
            answer = self.answers_.posterior(self.answers_.encode_evidence(known))[0]
        return dict(zip(map(plain_label, self.classes_), map(float, answer), strict=True))

    def _html_repr(self) -> str:
        return str(super()._html_repr()) + self._network_html()

    def _network_html(self) -> str:
        """What scikit-learn's box does not say: what came out, and the network."""
        if not hasattr(self, "network_"):
            return ""
        from marginbn.network.svg import draw_figure

        network, result, found = self.network_, self.result_, FIXED
        if result is not None:
            claim = "claimed by the file" if self.evidence_.source == "file" else result.solver
            optimality = "optimal" if result.is_optimal else self.status_.replace("_", " ")
            found = f"{optimality} ({claim}), gap {percent(result.gap)}"
        caption = (
            f"{counted(network.n_variables - 1, 'feature')}, "
            f"{counted(len(network.structure.arcs), 'arc')}, "
            f"{counted(network.n_parameters, 'parameter')}; structure: {found}. "
            "Measure its accuracy on held-out rows: score(X, y)."
        )
        return draw_figure(network.structure, network.variables, caption)
