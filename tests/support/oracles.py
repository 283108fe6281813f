"""Slow, obvious answers that use nothing of the package: raw codes, loops, the definitions.

Everything here is written from the paper and the textbooks and is never optimised. A table is a
list of rows of integer codes, class first, with a weight per row and an arity per column; a graph
is a tuple with one tuple of parents per variable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations, product

Graph = tuple[tuple[int, ...], ...]
Rows = Sequence[Sequence[int]]


def has_cycle(graph: Graph) -> bool:
    """Whether taking away variables without remaining parents gets stuck."""
    left = set(range(len(graph)))
    while left:
        free = {v for v in left if not left & set(graph[v])}
        if not free:
            return True
        left -= free
    return False


def reaches_root(parents: Sequence[int]) -> bool:
    """Whether every node 0 to n - 1 leads to the root, which is n."""
    n = len(parents)
    for node in range(n):
        steps = 0
        while node != n and steps <= n:
            node, steps = parents[node], steps + 1
        if node != n:
            return False
    return True


def arborescences(n: int) -> Iterator[tuple[int, ...]]:
    """Parents of all nodes, ``n`` for the root, of every tree over n nodes and the root."""
    return filter(reaches_root, product(range(n + 1), repeat=n))


def parent_sets(
    child: int, n: int, max_parents: int, class_restricted: bool, class_arcs: str = "free"
) -> list[tuple]:
    """All parent sets that the rule of section 4 (or no rule) allows a variable; with all arcs of
    the class every feature has the class, which then has no parents.
    """
    others = [v for v in range(n) if v != child]
    sets = [s for size in range(max_parents + 1) for s in combinations(others, size)]
    if class_arcs == "all":
        return [s for s in sets if 0 in s] if child != 0 else [()]
    if class_restricted and child != 0:
        sets = [s for s in sets if s == () or 0 in s]
    return sets


def all_graphs(
    n: int, max_parents: int, class_restricted: bool, class_arcs: str = "free"
) -> Iterator[Graph]:
    """Every acyclic graph over n variables with the given parent sets."""
    choices = [parent_sets(v, n, max_parents, class_restricted, class_arcs) for v in range(n)]
    for graph in product(*choices):
        if not has_cycle(graph):
            yield graph


def count(rows: Rows, weights: Sequence[float], wanted: dict[int, int]) -> float:
    """Total weight of the rows with the wanted codes."""
    return sum(
        w
        for row, w in zip(rows, weights, strict=True)
        if all(row[v] == c for v, c in wanted.items())
    )


class Parameters:
    """Laplace-smoothed parameters of every (child, parents), from counts of the rows (eq. 2)."""

    def __init__(
        self, rows: Rows, weights: Sequence[float], arities: Sequence[int], smoothing: float
    ) -> None:
        self.rows, self.weights, self.arities = rows, weights, arities
        self.smoothing = smoothing
        self.theta = cache(self._theta)

    def _theta(self, child: int, state: int, parents: tuple[tuple[int, int], ...]) -> float:
        """P(child = state | parents), parents given as (variable, state) pairs."""
        given = dict(parents)
        both = count(self.rows, self.weights, {**given, child: state})
        alone = count(self.rows, self.weights, given)
        return (both + self.smoothing) / (alone + self.smoothing * self.arities[child])

    def joint(self, graph: Graph, row: Sequence[int]) -> float:
        """P(row): the product of all factors."""
        probability: float = 1
        for child, parents in enumerate(graph):
            given = tuple((p, row[p]) for p in parents)
            probability *= self.theta(child, row[child], given)
        return probability


def log_odds(parameters: Parameters, graph: Graph, row: Sequence[int]) -> list[float]:
    """Eq. 8: log P(c, z) - log P(rival, z) of a row for every rival, in increasing order."""
    own = parameters.joint(graph, row)
    rivals = [c for c in range(parameters.arities[0]) if c != row[0]]
    return [math.log(own / parameters.joint(graph, [c, *row[1:]])) for c in rivals]


def soft_margin(
    rows: Rows, weights: Sequence[float], arities: Sequence[int], smoothing: float, gamma: float
) -> Callable[[Graph], float]:
    """Eq. 9: the true class against the best rival, capped at gamma."""
    parameters = Parameters(rows, weights, arities, smoothing)

    def score(graph: Graph) -> float:
        return sum(
            weight * min(gamma, *log_odds(parameters, graph, row))
            for row, weight in zip(rows, weights, strict=True)
        )

    return score


def against_the_rest(
    rows: Rows, weights: Sequence[float], arities: Sequence[int], smoothing: float
) -> list[Parameters]:
    """Eq. 20: for every class the parameters with it as class 0 and all others as class 1."""
    return [
        Parameters(
            [[int(row[0] != c), *row[1:]] for row in rows], weights, [2, *arities[1:]], smoothing
        )
        for c in range(arities[0])
    ]


def soft_binary_margin(
    rows: Rows, weights: Sequence[float], arities: Sequence[int], smoothing: float, gamma: float
) -> Callable[[Graph], float]:
    """Eq. 21: the row's own class against all the others together, capped at gamma."""
    two_classes = against_the_rest(rows, weights, arities, smoothing)

    def score(graph: Graph) -> float:
        return sum(
            weight * min(gamma, *log_odds(two_classes[row[0]], graph, [0, *row[1:]]))
            for row, weight in zip(rows, weights, strict=True)
        )

    return score


def local_terms(
    rows: Rows, weights: Sequence[float], arities: Sequence[int], child: int, parents: tuple
) -> list[list[float]]:
    """Counts n(h, j): one list over child states for every joint state h of the parents."""
    table = []
    for states in product(*(range(arities[p]) for p in parents)):
        given = dict(zip(parents, states, strict=True))
        table.append([count(rows, weights, {**given, child: j}) for j in range(arities[child])])
    return table


def log_likelihood(table: list[list[float]]) -> float:
    """Sum of n(h, j) log(n(h, j) / n(h))."""
    return sum(n * math.log(n / sum(line)) for line in table for n in line if n > 0)


def bayesian_dirichlet(table: list[list[float]], prior: float) -> float:
    """Log of the product of gamma functions of the BD metric with equal prior counts."""
    total = 0.0
    for line in table:
        all_prior = prior * len(line)
        total += math.lgamma(all_prior) - math.lgamma(all_prior + sum(line))
        total += sum(math.lgamma(prior + n) - math.lgamma(prior) for n in line)
    return total


def local_score(name: str, table: list[list[float]], total: float, size: float = 1.0) -> float:
    """A decomposable score of one variable; ``size`` is the equivalent sample size of BDeu."""
    n_parameters = len(table) * (len(table[0]) - 1)
    if name == "k2":
        return bayesian_dirichlet(table, 1.0)
    if name == "bdeu":
        return bayesian_dirichlet(table, size / (len(table) * len(table[0])))
    half_log = math.log(total) / 2
    penalty = {"loglik": 0.0, "aic": 1.0, "bic": half_log, "mdl": half_log}[name]
    return log_likelihood(table) - penalty * n_parameters


def decomposable(
    name: str, rows: Rows, weights: Sequence[float], arities: Sequence[int]
) -> Callable[[Graph], float]:
    """Sum of the local scores of all variables."""

    @cache
    def local(child: int, parents: tuple) -> float:
        table = local_terms(rows, weights, arities, child, parents)
        return local_score(name, table, sum(weights))

    return lambda graph: sum(local(child, parents) for child, parents in enumerate(graph))


def best_score(
    score: Callable[[Graph], float], n: int, max_parents: int, class_restricted: bool
) -> float:
    """The optimum by looking at every acyclic graph."""
    return max(score(graph) for graph in all_graphs(n, max_parents, class_restricted))


def posterior(
    parameters: Parameters, graph: Graph, query: int, known: dict[int, int]
) -> list[float]:
    """P(query | known): the joint probability of every state of all variables, added up."""
    totals = [0.0] * parameters.arities[query]
    for row in product(*map(range, parameters.arities)):
        if all(row[v] == state for v, state in known.items()):
            totals[row[query]] += parameters.joint(graph, row)
    return [total / sum(totals) for total in totals]


def d_separated(graph: Graph, a: set[int], b: set[int], given: set[int]) -> bool:
    """Every path between a and b has a chain or fork in ``given``, or a collider that is not an
    ancestor of it (or in it).
    """
    ancestors = set(given)
    while any(not set(graph[v]) <= ancestors for v in ancestors):
        ancestors |= {p for v in ancestors for p in graph[v]}

    def is_open(path: tuple[int, ...]) -> bool:
        for before, v, after in zip(path, path[1:], path[2:], strict=False):
            is_collider = before in graph[v] and after in graph[v]
            if (v not in ancestors) if is_collider else (v in given):
                return False
        return True

    def paths(path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if path[-1] in b:
            yield path
            return
        for v in range(len(graph)):
            if v not in path and (v in graph[path[-1]] or path[-1] in graph[v]):
                yield from paths((*path, v))

    return not any(is_open(path) for start in a for path in paths((start,)))
