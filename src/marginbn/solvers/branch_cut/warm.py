"""What a node hands to its children: labels of the samples, rows, columns and a basis.

Every sample m is treated in one of three ways:

* *linear* on rival c (``labels[m] = c``): min(gamma, min_c a_mc . eta) is replaced by a_mc . eta,
  part of the cost vector;
* *saturated* (``labels[m] = SATURATED``): replaced by gamma, part of the constant;
* *explicit* (``labels[m] = EXPLICIT``): a column tau_m <= gamma and some of its rows a_mc . eta -
  tau_m >= 0.

Each replacement is at least the minimum, so the program is a relaxation for any labels. Columns
are ordered [eta of the active candidates | tau of the explicit samples], rows [convexity |
structural | explicit], both by increasing number where numbers exist. Basis statuses use HiGHS'
numbers. New items get the statuses that keep the basis dual feasible: a new structural row is
basic; a linear sample that becomes explicit has tau basic and its row nonbasic; a saturated one
has tau nonbasic at gamma and its row basic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from marginbn.problem.array_types import BoolArray, FloatArray, IntArray
from marginbn.solvers.branch_cut.arrays import Instance

SATURATED, EXPLICIT = -1, -2
"""Labels of samples that are not linear; those of linear ones are rivals, from 0 on."""

LOWER, BASIC, UPPER = 0, 1, 2
"""Basis statuses, numbered as in HiGHS."""

StatusArray = npt.NDArray[np.int8]
LabelArray = npt.NDArray[np.int16]


@dataclass(frozen=True)
class Basis:
    """Statuses of the blocks of columns and rows."""

    eta: StatusArray
    tau: StatusArray
    convexity: StatusArray
    structural: StatusArray
    explicit: StatusArray


@dataclass(frozen=True)
class Warm:
    """State of the relaxation."""

    labels: LabelArray  # (M,) see above
    cost: FloatArray  # (K,) linear + sum over linear samples of w_m a_mc
    terms: int  # products that were added to get it
    active: IntArray  # candidates with a column, increasing
    rows: tuple[int, ...]  # numbers of the structural rows
    explicit: IntArray  # margin rows m * rivals + c, increasing; every explicit sample has some
    basis: Basis | None  # None for a cold start

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, roughly."""
        arrays = (self.labels, self.cost, self.active, self.explicit)
        return sum(a.nbytes for a in arrays) + 16 * len(self.rows) + 2 * len(self.active) + 200

    def samples(self, n_rivals: int) -> IntArray:
        """The explicit samples, increasing."""
        return np.unique(self.explicit // n_rivals)

    def saturated_weight(self, instance: Instance) -> float:
        """Total weight of the saturated samples."""
        return float(instance.weights[self.labels == SATURATED].sum())

    def with_rows(self, numbers: list[int]) -> Warm:
        """More structural rows, basic."""
        known = set(self.rows)
        new = [number for number in dict.fromkeys(numbers) if number not in known]
        if not new:
            return self
        basis = self.basis
        if basis is not None:
            added = np.full(len(new), BASIC, dtype=np.int8)
            basis = replace(basis, structural=np.concatenate([basis.structural, added]))
        return replace(self, rows=(*self.rows, *new), basis=basis)

    def with_columns(self, columns: IntArray) -> Warm:
        """More candidates, nonbasic at zero."""
        new = np.setdiff1d(columns, self.active)
        if len(new) == 0:
            return self
        active, order = _merge(self.active, new)
        basis = self.basis
        if basis is not None:
            added = np.full(len(new), LOWER, dtype=np.int8)
            basis = replace(basis, eta=np.concatenate([basis.eta, added])[order])
        return replace(self, active=active, basis=basis)

    def with_samples(self, instance: Instance, samples: IntArray, rivals: IntArray) -> Warm:
        """Make samples explicit, each with the row of a rival (the one it violates most).

        ``samples`` is increasing; those that are explicit already only get the row.
        """
        n_rivals, labels = instance.n_rivals, self.labels[samples]
        linear = labels >= 0
        moved = samples[linear] * n_rivals + labels[linear]  # rows that were part of the cost
        cost = self.cost
        if len(moved):
            cost = cost - instance.coefficients.combine(moved, instance.weights[samples[linear]])
        wanted = np.concatenate([moved, samples * n_rivals + rivals])
        new_rows = np.setdiff1d(wanted, self.explicit)
        explicit, order = _merge(self.explicit, new_rows)
        basis = self.basis
        if basis is not None:
            fresh = labels != EXPLICIT
            _, tau_order = _merge(self.samples(n_rivals), samples[fresh])
            tau = np.where(linear[fresh], BASIC, UPPER).astype(np.int8)
            rows = np.where(np.isin(new_rows, moved), LOWER, BASIC).astype(np.int8)
            basis = replace(
                basis,
                tau=np.concatenate([basis.tau, tau])[tau_order],
                explicit=np.concatenate([basis.explicit, rows])[order],
            )
        marked = self.labels.copy()
        marked[samples] = EXPLICIT
        terms = self.terms + 2 * len(moved)
        return replace(self, labels=marked, cost=cost, terms=terms, explicit=explicit, basis=basis)


def _merge(old: IntArray, new: IntArray) -> tuple[IntArray, IntArray]:
    """Sorted union of two disjoint lists, and the order that sorts their concatenation."""
    both = np.concatenate([old, new])
    order = np.argsort(both, kind="stable")
    return both[order], order


def labels_at(instance: Instance, chosen: IntArray) -> LabelArray:
    """Labels that are exact at a selection: its smallest row, or saturated; int16 (M,)."""
    rows = instance.coefficients.margins_at(chosen, np.ones(len(chosen)))
    margins = rows.reshape(instance.n_samples, instance.n_rivals)
    if instance.n_samples == 0:
        return np.zeros(0, dtype=np.int16)
    labels: LabelArray = margins.argmin(axis=1).astype(np.int16)
    labels[margins.min(axis=1) >= instance.gamma] = SATURATED
    return labels


def cold_start(instance: Instance, labels: LabelArray, active: IntArray, rows: list[int]) -> Warm:
    """State without basis; no label may be EXPLICIT."""
    no_rows = np.zeros(0, dtype=np.int64)
    warm = Warm(labels, instance.linear, 0, active, tuple(rows), no_rows, None)
    return refresh_cost(instance, warm)


def refresh_cost(instance: Instance, warm: Warm) -> Warm:
    """The same state with the cost vector summed again, to shed accumulated rounding."""
    linear = np.flatnonzero(warm.labels >= 0)
    rows = linear * instance.n_rivals + warm.labels[linear]
    cost = instance.linear + instance.coefficients.combine(rows, instance.weights[linear])
    return replace(warm, cost=cost, terms=len(rows) + 1)


def compress(
    instance: Instance, warm: Warm, columns: BoolArray, near: BoolArray, near_rows: BoolArray
) -> Warm:
    """Drop from the state after a solve what the solution does not need, but for some columns (K,),
    and for the samples (M,) and margin rows near a kink.

    Basic structural rows go. An explicit sample whose tau is basic and has exactly one nonbasic
    row becomes linear on it; one whose tau is nonbasic and has no nonbasic row becomes saturated;
    unless it is to be kept. All of these removals take as many basic columns as rows.
    """
    basis = warm.basis
    assert basis is not None  # a solve has set it
    n_rivals = instance.n_rivals
    samples = warm.samples(n_rivals)
    owner = np.searchsorted(samples, warm.explicit // n_rivals)
    tight = basis.explicit != BASIC
    n_tight = np.bincount(owner, tight, len(samples)).astype(np.int64)
    leaving = ~near[samples]
    to_linear = leaving & (basis.tau == BASIC) & (n_tight == 1)
    to_saturated = leaving & (basis.tau != BASIC) & (n_tight == 0)
    labels = warm.labels.copy()
    labels[samples[to_saturated]] = SATURATED
    moved = warm.explicit[tight & to_linear[owner]]
    labels[moved // n_rivals] = (moved % n_rivals).astype(np.int16)
    cost = warm.cost
    if len(moved):
        cost = cost + instance.coefficients.combine(moved, instance.weights[moved // n_rivals])
    stays = ~(to_linear | to_saturated)
    first_row = np.zeros(len(warm.explicit), dtype=bool)
    first_row[np.unique(owner, return_index=True)[1]] = True  # a sample must not lose all rows
    row_stays = stays[owner] & (
        tight | near_rows[warm.explicit] | (first_row & (n_tight[owner] == 0))
    )
    cut_stays = basis.structural != BASIC
    eta_stays = columns[warm.active] | (basis.eta == BASIC)
    new_basis = Basis(
        basis.eta[eta_stays],
        basis.tau[stays],
        basis.convexity,
        basis.structural[cut_stays],
        basis.explicit[row_stays],
    )
    return Warm(
        labels,
        cost,
        warm.terms + 2 * len(moved),
        warm.active[eta_stays],
        tuple(number for number, stay in zip(warm.rows, cut_stays, strict=True) if stay),
        warm.explicit[row_stays],
        new_basis,
    )
