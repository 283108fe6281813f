"""A proper Bayesian network whose class posterior is that of given scores.

    s_c(x) = bias[c] + sum_i effects[i][c, x_i] + sum_F tables[F][c, g(x_F)],   P(c | x) = softmax s

Trained scores are no probabilities of features. Multiplied by any positive class-free tables q_i
they are an unnormalised joint distribution with this posterior:

    P(c, x)  proportional to  exp s_c(x) * prod_i q_i(x_i | x_pa(i))

Summing the features out one after the other, children first, and dividing by each sum, turns the
product into conditional tables that sum to one, without changing it (``cliques.sum_out``). Three
questions remain, one module each:

``marrying``
    a sum is a function of all features that share a table with the one summed out, and must find
    a family that holds them: which arcs are added, and in which order it is done;
``cliques``
    the axes of the tables, the sums and where they go;
``gauge``
    which q_i: those with which the network has the family marginals of the data.

The posterior is exact up to rounding whatever q_i are, so these may stop short of convergence.
"""

from __future__ import annotations

import numpy as np

from marginbn.exceptions import InputError
from marginbn.network.network import BayesianNetwork
from marginbn.parameters.class_scores import ClassScores, FloatArray
from marginbn.parameters.cliques import Cliques, Tables, potentials_of, sum_out
from marginbn.parameters.gauge import Fit, class_free_tables
from marginbn.parameters.marrying import CLASS, plan_marrying
from marginbn.problem.encoded import EncodedData
from marginbn.problem.structure import Structure


def normalised_network(
    scores: ClassScores,
    structure: Structure,
    data: EncodedData,
    *,
    fit_marginals: bool = True,
) -> BayesianNetwork:
    """The network with the class posterior of the scores.

    Parameters
    ----------
    scores
        What the posterior is the softmax of.
    structure
        Arcs that the network shall have. Those that the scores need are added: from the class to
        features with an effect, and between features that must be married. Arcs are turned around
        or given up only where a table would be too large: the class with its parents above 2^16
        cells, any table above 2^24; see :mod:`marginbn.parameters.marrying`.
    data
        Where the distribution of the features comes from.
    fit_marginals
        Whether the class-free part is fitted until the network has the family marginals of the
        data; otherwise it is left as it was counted, which is faster and further from the data.

    Returns
    -------
    BayesianNetwork
        Parents are seen in the groups of the scores; a parent of the class as finely as its main
        effect demands.

    Examples
    --------
    >>> from marginbn import EncodedData, Structure, Variable
    >>> variables = Variable("class", ("no", "yes")), Variable("colour", ("red", "blue"))
    >>> effect = np.array([[0.5, -0.5], [-0.5, 0.5]])
    >>> scores = ClassScores(variables, (None, None), np.zeros(2), (effect,), {})
    >>> data = EncodedData(np.array([[0, 0], [1, 1], [1, 0], [1, 1]]), np.ones(4), variables)
    >>> network = normalised_network(scores, Structure(((), (0,))), data)
    >>> network.posterior_array("class", {"colour": "blue"}).round(4).tolist()
    [0.2689, 0.7311]
    >>> np.exp(scores.log_posterior(np.array([[0, 1]]))).round(4).tolist()
    [[0.2689, 0.7311]]
    """
    _check_input(scores, structure, data)
    plan = plan_marrying(scores, structure)
    cliques = Cliques(plan, tuple(v.arity for v in scores.variables))
    potentials = potentials_of(scores, cliques)
    class_free = class_free_tables(data, cliques)
    tables = sum_out(_with_class_free(potentials, class_free), cliques)
    if fit_marginals:
        fit = Fit.start(tables, class_free, cliques)
        fit.run()
        tables = sum_out(_with_class_free(potentials, fit.class_free), cliques)
    above = {i: table[0] for i, table in class_free.items() if i not in tables}
    families = {**above, **tables, CLASS: np.moveaxis(tables[CLASS], 0, -1)}
    log_tables = tuple(families[i] for i in range(len(families)))
    return BayesianNetwork(plan.structure, scores.variables, log_tables, plan.groups)


def _with_class_free(potentials: Tables, class_free: Tables) -> dict[int, FloatArray]:
    return {v: p if v == CLASS else p + class_free[v] for v, p in potentials.items()}


def _check_input(scores: ClassScores, structure: Structure, data: EncodedData) -> None:
    if data.variables != scores.variables:
        raise InputError("data must have the variables of the scores, with the same states")
    if structure.n_variables != len(scores.variables):
        raise InputError(
            f"structure must have the {len(scores.variables)} variables of the scores, "
            f"got {structure.n_variables}"
        )
    numbers = (scores.bias, *scores.effects, *scores.tables.values())
    if not all(np.isfinite(values).all() for values in numbers):
        raise InputError("scores must be finite; train with a positive penalty")
