"""The cuts of Fayyad and Irani (``data/discretize.py``) as a transformer of scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from marginbn.data.discretize import assign_bins, mdlp_cuts, name_bins


class MDLPDiscretizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Supervised discretisation by entropy with the MDL stopping rule of Fayyad and Irani.

    Each numeric column is cut where the classes are separated best, and cut again inside the
    parts, until a further cut would cost more bits to describe than it saves. A column without
    information about the class becomes a single bin. There is nothing to tune.

    Missing values (NaN) are allowed: they are ignored while the cuts of their column
    are learned, and they stay missing in the output. Infinite values are refused.

    Attributes
    ----------
    cuts_ : list of n_features float64 arrays
        Strictly increasing cuts of each feature; a value equal to a cut belongs to the left.
        Equally good cuts are decided for the smallest.
    n_bins_ : int64 array of shape (n_features,)
        Number of bins of each feature.
    bin_names_ : list of n_features tuples of str
        Names of the bins, for example ``("<= 2.45", "(2.45, 4.75]", "> 4.75")``; of a single bin
        ``("any number",)``.
    classes_ : array, one entry per class
        Class labels seen in `y`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, when `X` was a data frame whose column names are strings.

    References
    ----------
    U. M. Fayyad and K. B. Irani (1993). Multi-interval discretization of continuous-valued
    attributes for classification learning. IJCAI, 1022-1027.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn import MDLPDiscretizer
    >>> X = np.array([[1.0], [2.0], [3.0], [11.0], [12.0], [13.0]])
    >>> y = ["low", "low", "low", "high", "high", "high"]
    >>> discretizer = MDLPDiscretizer().fit(X, y)
    >>> discretizer.bin_names_
    [('<= 7', '> 7')]
    >>> discretizer.transform([[5.0], [np.nan], [100.0]]).tolist()
    [[0.0], [nan], [1.0]]
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the cuts of each feature.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Numbers; NaN marks a missing value.
        y : array of shape (n_samples,)
            Class labels.
        sample_weight : array of shape (n_samples,), default=None
            Non-negative weights that count as repetitions of a sample. They are not only relative:
            the more (heavier) samples, the finer the bins.

        Returns
        -------
        self : MDLPDiscretizer
        """
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.cuts_ = [mdlp_cuts(column, codes, weights, self.classes_.size) for column in X.T]
        self.n_bins_ = np.array([cuts.size + 1 for cuts in self.cuts_], dtype=np.int64)
        self.bin_names_ = [name_bins(cuts) for cuts in self.cuts_]
        return self

    def transform(self, X: Any) -> Any:
        """Replace each value by the code of its bin.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Values outside the range seen in `fit` fall into the first or last bin.

        Returns
        -------
        codes : float64 array of shape (n_samples, n_features)
            Whole numbers ``0 .. n_bins_[j] - 1`` as floats, so that NaN stays NaN. A data frame
            after ``set_output``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        codes = np.empty(X.shape, dtype=np.float64)
        for j, cuts in enumerate(self.cuts_):
            codes[:, j] = assign_bins(X[:, j], cuts)
        codes[np.isnan(X)] = np.nan
        return codes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags
