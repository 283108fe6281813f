"""What one gamma knows about the next.

For dual weights u >= 0 with sum_c u_mc <= w_m every structure has

    f(eta) <= gamma sum_m (w_m - sum_c u_mc) + (linear + A^T u) . eta .

gamma stands in one place and the coefficients A do not depend on it, so the weights that bound a
problem well bound its neighbours along a path of gammas too, and the structures whose combination
is the relaxed solution there are the first guess here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.problem import StructureProblem
from marginbn.solvers.fingerprint import fingerprint


@dataclass(frozen=True, eq=False)
class Majorant:
    """f <= gamma * unused + constant + the sum of ``gradient`` over the chosen candidates, for
    every structure of the problem and every gamma.

    Attributes
    ----------
    problem : name of the problem whatever its gamma
    unused : weight that the dual weights leave over
    constant : everything else that does not depend on the structure, and the rounding allowance
    gradient : (candidates,)
    selections : (k, variables) structures whose combination is the relaxed solution
    shares : (k,) their shares
    """

    problem: str
    unused: float
    constant: float
    gradient: NDArray[np.float64]
    selections: NDArray[np.int64]
    shares: NDArray[np.float64]

    def belongs_to(self, problem: StructureProblem) -> bool:
        """Whether the problem differs in nothing but gamma."""
        return self.problem == name_without_gamma(problem)


def name_without_gamma(problem: StructureProblem) -> str:
    """The same for all problems that differ in gamma alone."""
    return fingerprint(problem if problem.is_linear else problem.with_gamma(1.0))
